/* What reads the rows, for one type of values (V). */

typedef struct {
    V value;
    uint32_t column;
} NAME(Entry);

/* the entries row after row, from those column after column; value and column side by side are one read from memory */
static void NAME(arrange)(State *s) {
    const V *values = s->column_values;
    NAME(Entry) *entries = s->entries;
    for (int64_t k = 0; k < s->by_column[s->d]; k++) s->rows[s->row_of[k]].length++;
    for (int64_t i = 0; i < s->n; i++) s->by_row[i + 1] = s->by_row[i] + s->rows[i].length;
    for (int64_t j = 0; j < s->d; j++) {
        for (int64_t k = s->by_column[j]; k < s->by_column[j + 1]; k++) {
            NAME(Entry) *entry = entries + s->by_row[s->row_of[k]]++;
            entry->value = values[k], entry->column = (uint32_t)j;
        }
    }
    for (int64_t i = s->n; i > 0; i--) s->by_row[i] = s->by_row[i - 1]; /* each start has become the next one */
    s->by_row[0] = 0;
}

/* the gradient of a column, from its rows' residuals */
static double NAME(gradient_of)(const State *s, int64_t j) {
    const V *values = s->column_values;
    double sum = 0;
    for (int64_t k = s->by_column[j]; k < s->by_column[j + 1]; k++) sum += values[k] * residual_of(s, s->rows + s->row_of[k]);
    return sum;
}

/* w_j grows by ``weight``, the scale is that of the next step */
static void NAME(shift)(State *s, int64_t j, double weight) {
    const V *values = s->column_values;
    s->step++;
    s->scale = s->scales[s->step];
    for (int64_t k = s->by_column[j]; k < s->by_column[j + 1]; k++) s->rows[s->row_of[k]].margin += weight * values[k];
}

/* a row on a new piece, or with another margin, changes the columns it has entries in */
static void NAME(update_row)(State *s, int64_t i) {
    const NAME(Entry) *entries = s->entries;
    Row *row = s->rows + i;
    double slope = row->slope, constant = row->constant;
    take_off_calendar(s, i);
    find_piece(s, i);
    put_on_calendar(s, i);
    slope = row->slope - slope, constant = row->constant - constant;
    if (slope == 0 && constant == 0) return;
    for (int64_t k = s->by_row[i]; k < s->by_row[i + 1]; k++) {
        Column *column = s->columns + entries[k].column;
        column->A += slope * entries[k].value;
        column->D += constant * entries[k].value;
        if (!has_room(s, column)) raise_column(s, entries[k].column);
    }
}

/* a step of the walk: the rows of the column, and those whose piece ends now */
static void NAME(move)(State *s, int64_t j, double weight) {
    NAME(shift)(s, j, weight);
    for (int64_t k = s->by_column[j]; k < s->by_column[j + 1]; k++) {
        int64_t next = s->by_row[s->row_of[k + 1 < s->by_column[j + 1] ? k + 1 : k]]; /* asked for early */
        for (int entry = 0; entry < 64; entry += 4) __builtin_prefetch((const NAME(Entry) *)s->entries + next + entry);
        NAME(update_row)(s, s->row_of[k]);
    }
    while (s->calendar[s->step] >= 0) NAME(update_row)(s, s->calendar[s->step]);
}

/* everything afresh, for the margins and the scale now */
static void NAME(refresh)(State *s) {
    const V *values = s->column_values;
    s->exact = 0;
    for (int64_t i = 0; i < s->n; i++) {
        take_off_calendar(s, i);
        find_piece(s, i);
        put_on_calendar(s, i);
    }
    for (int64_t j = 0; j < s->d; j++) {
        double A = 0, D = 0;
        for (int64_t k = s->by_column[j]; k < s->by_column[j + 1]; k++) {
            const Row *row = s->rows + s->row_of[k];
            A += row->slope * values[k];
            D += row->constant * values[k];
        }
        s->columns[j].A = A, s->columns[j].D = D;
    }
}

#undef NAME
#undef V
