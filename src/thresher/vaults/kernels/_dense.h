/* Products with dense columns, for one type of values (V).
 *
 * Row-local: what is computed for one row, or one run of numbers, is the same sequence of operations wherever it lies and
 * whatever lies beside it. BLAS cannot promise that: its edges are computed by other code than its middle. The compiler
 * may not fuse or reorder (-ffp-contract=off, no -ffast-math): vector instructions only do several rows side by side.
 */

#define PANEL 1024 /* rows whose sums stay in the first-level cache */

/* sums[i] += the sum of columns[c][i] * w[c], in the order of c */
static ALWAYS_INLINE void NAME(add_four)(double *restrict sums, const V *const columns[4], const double *w, int64_t size) {
    const V *restrict p = columns[0], *restrict q = columns[1], *restrict r = columns[2], *restrict s = columns[3];
    for (int64_t i = 0; i < size; i++)
        sums[i] = (((sums[i] + p[i] * w[0]) + q[i] * w[1]) + r[i] * w[2]) + s[i] * w[3];
}

/* out[k][i] = sum of X[i, chosen[c]] * weights[k][c], in the order of c, for first <= i < last; out has n rows per k */
EVERY_MACHINE
static void NAME(rows_times)(const V *X, int64_t n, const int64_t *chosen, const double *weights, int64_t count,
                             int64_t outputs, double *out, int64_t first, int64_t last) {
    for (int64_t start = first; start < last; start += PANEL) {
        int64_t size = last - start < PANEL ? last - start : PANEL;
        for (int64_t k = 0; k < outputs; k++) {
            double *restrict sums = out + k * n + start;
            const double *w = weights + k * count;
            for (int64_t i = 0; i < size; i++) sums[i] = 0;
            int64_t c = 0;
            for (; c + 4 <= count; c += 4) {
                const V *columns[4];
                for (int l = 0; l < 4; l++) columns[l] = X + chosen[c + l] * n + start;
                NAME(add_four)(sums, columns, w + c, size);
            }
            for (; c < count; c++) {
                const V *restrict p = X + chosen[c] * n + start;
                for (int64_t i = 0; i < size; i++) sums[i] += p[i] * w[c];
            }
        }
    }
}

/* out[i] = sum of X[i, j]^2, in the order of j, for first <= i < last */
EVERY_MACHINE
static void NAME(squares)(const V *X, int64_t n, int64_t d, double *out, int64_t first, int64_t last) {
    for (int64_t start = first; start < last; start += PANEL) {
        int64_t size = last - start < PANEL ? last - start : PANEL;
        double *restrict sums = out + start;
        for (int64_t i = 0; i < size; i++) sums[i] = 0;
        int64_t j = 0;
        for (; j + 4 <= d; j += 4) {
            const V *restrict p = X + j * n + start, *restrict q = p + n, *restrict r = q + n, *restrict s = r + n;
            for (int64_t i = 0; i < size; i++)
                sums[i] = (((sums[i] + (double)p[i] * p[i]) + (double)q[i] * q[i]) + (double)r[i] * r[i]) + (double)s[i] * s[i];
        }
        for (; j < d; j++) {
            const V *restrict p = X + j * n + start;
            for (int64_t i = 0; i < size; i++) sums[i] += (double)p[i] * p[i];
        }
    }
}

typedef V NAME(Four) __attribute__((vector_size(4 * sizeof(V)), aligned(sizeof(V)), may_alias));

#define FOUR(type, at) __builtin_convertvector(*(const type *)(at), Doubles)

/* totals[l] = the sum of runs[l][i] * r[i] over at most BLOCK terms, in four interleaved parts, for several runs */
static ALWAYS_INLINE void NAME(block_dots)(const V *runs, int64_t n, int several, const double *r, int64_t size,
                                           double *totals) {
    Doubles parts[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 <= size; i += 4) {
        Doubles factor = FOUR(Doubles, r + i);
        for (int l = 0; l < several; l++) parts[l] += FOUR(NAME(Four), runs + l * n + i) * factor;
    }
    for (int l = 0; l < several; l++) {
        for (int64_t at = i; at < size; at++) parts[l][at - i] += runs[l * n + at] * r[at];
        totals[l] = (parts[l][0] + parts[l][2]) + (parts[l][1] + parts[l][3]);
    }
}

/* sums[l] grows by <runs[l], r> over ``size`` terms, the totals of blocks added with compensation */
static ALWAYS_INLINE void NAME(add_dots)(const V *runs, int64_t n, int several, const double *r, int64_t size, double *sums,
                                         double *carries) {
    double totals[4];
    for (int64_t at = 0; at < size; at += BLOCK) {
        NAME(block_dots)(runs + at, n, several, r + at, size - at < BLOCK ? size - at : BLOCK, totals);
        for (int l = 0; l < several; l++) add_compensated(sums + l, carries + l, totals[l]);
    }
}

/* out[k][j] = <run j, r_k> for first <= j < last; runs and r_k have n numbers each, out and carry d numbers per k */
EVERY_MACHINE
static void NAME(run_dots)(const V *runs, int64_t n, int64_t d, const double *r, int64_t outputs, double *out, double *carry,
                           int64_t first, int64_t last) {
    for (int64_t k = 0; k < outputs; k++)
        for (int64_t j = first; j < last; j++) out[k * d + j] = carry[k * d + j] = 0;
    for (int64_t start = 0; start < n; start += STRETCH) {
        int64_t size = n - start < STRETCH ? n - start : STRETCH, j = first;
        for (; j + 4 <= last; j += 4)
            for (int64_t k = 0; k < outputs; k++)
                NAME(add_dots)(runs + j * n + start, n, 4, r + k * n + start, size, out + k * d + j, carry + k * d + j);
        for (; j < last; j++)
            for (int64_t k = 0; k < outputs; k++)
                NAME(add_dots)(runs + j * n + start, n, 1, r + k * n + start, size, out + k * d + j, carry + k * d + j);
    }
    for (int64_t k = 0; k < outputs; k++)
        for (int64_t j = first; j < last; j++) out[k * d + j] += carry[k * d + j];
}

#undef FOUR
#undef PANEL
#undef NAME
#undef V
