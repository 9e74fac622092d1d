/* Products with sparse columns, for one type of values (V) and one of row numbers (I).
 *
 * The vector that is read at random places is the short one (n numbers), and each column's sum is written once. Sums
 * are in double precision whatever V is. Memory far ahead is asked for early: the columns are read once, in order.
 */

#define AHEAD 256

static void NAME(dots)(const V *data, const I *rows, const int64_t *starts, const double *r, double *out,
                       int64_t first, int64_t last) {
    for (int64_t j = first; j < last; j++) {
        double sum = 0, carry = 0;
        int64_t k = starts[j], end = starts[j + 1];
        while (k < end) {
            int64_t stop = end - k < BLOCK ? end : k + BLOCK;
            double a = 0, b = 0, c = 0, d = 0;
            for (; k + 8 <= stop; k += 8) {
                __builtin_prefetch(data + k + AHEAD, 0, 0);
                __builtin_prefetch(rows + k + AHEAD, 0, 0);
                a += data[k] * r[rows[k]];
                b += data[k + 1] * r[rows[k + 1]];
                c += data[k + 2] * r[rows[k + 2]];
                d += data[k + 3] * r[rows[k + 3]];
                a += data[k + 4] * r[rows[k + 4]];
                b += data[k + 5] * r[rows[k + 5]];
                c += data[k + 6] * r[rows[k + 6]];
                d += data[k + 7] * r[rows[k + 7]];
            }
            for (; k < stop; k++) a += data[k] * r[rows[k]];
            add_compensated(&sum, &carry, (a + b) + (c + d));
        }
        out[j] = sum + carry;
    }
}

static void NAME(add)(const V *data, const I *rows, const int64_t *starts, const int64_t *columns, const double *weights,
                      int64_t count, double *out) {
    for (int64_t at = 0; at < count; at++) {
        double weight = weights[at];
        for (int64_t k = starts[columns[at]]; k < starts[columns[at] + 1]; k++) out[rows[k]] += data[k] * weight;
    }
}

#undef AHEAD
#undef NAME
#undef V
#undef I
