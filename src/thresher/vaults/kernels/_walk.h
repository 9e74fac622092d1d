/* Private Frank-Wolfe on sparse rows at the cost of what a step touches; docs/algorithms/frank-wolfe.md explains and proves it.
 *
 * The iterate is S w, the margin of row i is S M_i. The residual of row i is s psi(s S M_i - o) times its share, which is
 * 1 unless its person has other rows. psi is within ``slack`` of a function that is linear on pieces. With that stand-in
 * the residual is S p_i + q_i and the gradient of column j is S A_j + D_j, where A = X'p and D = X'q, for every S at which
 * no row changes its piece. */

#define LEVELS 64
#define FAR 500 /* how far a bound may lie above top: weights are at most e^FAR, and their sum is finite */

typedef struct {
    double A, D;
    double room; /* what |S A + D| may be without leaving the level */
    int32_t place, level;
} Column;

typedef struct {
    double margin, slope, constant, offset; /* M, p, q, o */
    double share;                           /* what the row counts */
    int32_t sign, piece;                    /* s, and where psi is read */
    int32_t due, next, previous;            /* the step at which the piece ends, and a list of the rows due then */
    int32_t length;
} Row;

typedef struct {
    int64_t n, d, pieces, steps, step;
    int logistic, has_constant, single, exact; /* exact: D is the gradient itself */
    double clip, kappa, kappa_of_constant, scale, last, top;
    double bounds[LEVELS], weights[LEVELS]; /* of kappa |gradient|, and 2 cosh(bound) / e^top */
    int64_t starts[LEVELS + 1];             /* of each level in the order */
    Column *columns;
    double *slacks; /* how far the stand-in may be from the gradient */
    Row *rows;
    int32_t *order, *calendar; /* columns by level; the first row due at each step, or -1 */
    int64_t *due_work;         /* stored entries in the rows due at each step */
    int64_t *by_row;           /* where each row starts among the entries */
    void *entries;             /* values and columns, row after row */
    const double *scales, *knots, *slopes, *constants; /* psi is constants[k] + slopes[k] u up to knots[k] */
    const int64_t *by_column;
    const uint32_t *row_of;
    const void *column_values;
} State;

static double kappa_of(const State *s, int64_t j) {
    return s->has_constant && j == s->d - 1 ? s->kappa_of_constant : s->kappa;
}

static double slack_of(const State *s, int64_t j) { return s->exact ? 0 : s->slacks[j]; }

static double stand_in(const State *s, int64_t j) { return s->scale * s->columns[j].A + s->columns[j].D; }

/* 2 cosh(b) / e^top */
static double weight_of(double b, double top) { return exp(b - top) + exp(-b - top); }

/* what kappa |gradient| of a column cannot exceed from now until S = last: the stand-in is linear in S */
static double bound_of(const State *s, int64_t j) {
    double now = fabs(stand_in(s, j)), then = fabs(s->last * s->columns[j].A + s->columns[j].D);
    return kappa_of(s, j) * ((now > then ? now : then) + slack_of(s, j)) * (1 + 1e-12);
}

/* -- levels of columns -------------------------------------------------------------------------------------------- */

static void swap_places(State *s, int64_t a, int64_t b) {
    int32_t j = s->order[a], k = s->order[b];
    s->order[a] = k, s->order[b] = j;
    s->columns[k].place = (int32_t)a, s->columns[j].place = (int32_t)b;
}

static void make_room(State *s, int64_t j) {
    Column *c = s->columns + j;
    c->room = s->bounds[c->level] / (kappa_of(s, j) * (1 + 2e-12)) - slack_of(s, j);
}

static int has_room(const State *s, const Column *c) {
    return fabs(s->scale * c->A + c->D) <= c->room && fabs(s->last * c->A + c->D) <= c->room;
}

static void weigh_levels(State *s) {
    for (int l = 0; l < LEVELS; l++) s->weights[l] = weight_of(s->bounds[l], s->top);
}

/* a column whose bound has grown beyond its level's moves up; beyond all, the bound of the first level grows */
static void raise_column(State *s, int64_t j) {
    Column *c = s->columns + j;
    double bound = bound_of(s, j);
    while (c->level > 0 && bound > s->bounds[c->level]) {
        swap_places(s, c->place, s->starts[c->level]);
        s->starts[c->level]++;
        c->level--;
    }
    if (bound > s->bounds[c->level]) {
        s->bounds[0] = bound;
        s->weights[0] = weight_of(bound, s->top);
        if (bound > s->top + FAR) s->top = bound, weigh_levels(s);
    }
    make_room(s, j);
}

/* level l holds the columns whose bound is at most top - l and more than top - l - 1; the last holds all the rest */
static void sort_columns(State *s, double last) {
    int64_t next[LEVELS + 1] = {0};
    s->last = last;
    s->top = 0;
    for (int64_t j = 0; j < s->d; j++) {
        double bound = bound_of(s, j);
        if (bound > s->top) s->top = bound;
    }
    for (int64_t j = 0; j < s->d; j++) {
        double below = s->top - bound_of(s, j);
        int32_t level = below < LEVELS - 1 ? (int32_t)below : LEVELS - 1;
        s->columns[j].level = level;
        next[level + 1]++;
    }
    for (int l = 0; l < LEVELS; l++) {
        s->bounds[l] = s->top > l ? s->top - l : 0;
        next[l + 1] += next[l];
        s->starts[l] = next[l];
    }
    weigh_levels(s);
    s->starts[LEVELS] = s->d;
    for (int64_t j = 0; j < s->d; j++) {
        int64_t place = next[s->columns[j].level]++;
        s->order[place] = (int32_t)j;
        s->columns[j].place = (int32_t)place;
        make_room(s, j);
    }
}

/* -- pieces of rows ----------------------------------------------------------------------------------------------- */

static double argument_of(const State *s, const Row *row, double scale) {
    return row->sign * scale * row->margin - row->offset;
}

static int leaves(const State *s, const Row *row, double scale) {
    double u = argument_of(s, row, scale);
    return (row->piece > 0 && u < s->knots[row->piece - 1]) || (row->piece < s->pieces - 1 && u > s->knots[row->piece]);
}

static void take_off_calendar(State *s, int64_t i) {
    Row *row = s->rows + i;
    if (row->due < 0) return;
    if (row->previous < 0) s->calendar[row->due] = row->next;
    else s->rows[row->previous].next = row->next;
    if (row->next >= 0) s->rows[row->next].previous = row->previous;
    s->due_work[row->due] -= row->length;
    row->due = -1;
}

/* an untouched row leaves its piece at a step that is known already, since all scales are: margins only shrink */
static void put_on_calendar(State *s, int64_t i) {
    Row *row = s->rows + i;
    if (row->margin == 0 || !leaves(s, row, s->scales[s->steps])) return;
    int64_t stays = s->step, gone = s->steps;
    while (gone - stays > 1) {
        int64_t middle = (stays + gone) / 2;
        if (leaves(s, row, s->scales[middle])) gone = middle;
        else stays = middle;
    }
    row->due = (int32_t)gone;
    row->previous = -1;
    row->next = s->calendar[gone];
    if (row->next >= 0) s->rows[row->next].previous = (int32_t)i;
    s->calendar[gone] = (int32_t)i;
    s->due_work[gone] += row->length;
}

/* p and q of a row at its margin and the scale now */
static void find_piece(State *s, int64_t i) {
    Row *row = s->rows + i;
    double u = argument_of(s, row, s->scale);
    while (row->piece > 0 && u < s->knots[row->piece - 1]) row->piece--;
    while (row->piece < s->pieces - 1 && u > s->knots[row->piece]) row->piece++;
    row->slope = row->share * (s->slopes[row->piece] * row->margin);
    row->constant = row->share * (row->sign * (s->constants[row->piece] - s->slopes[row->piece] * row->offset));
}

/* the residual itself */
static double residual_of(const State *s, const Row *row) {
    double u = argument_of(s, row, s->scale);
    double psi = s->logistic ? 1 / (1 + exp(-u)) : u;
    return row->share * (row->sign * (psi > s->clip ? s->clip : psi < -s->clip ? -s->clip : psi));
}
