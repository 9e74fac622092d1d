/* Compiled loops over rows, sparse and dense. Every one has a NumPy or SciPy equal in Python, which is used where this is missing.
 *
 * Callers pass arrays of the right kind (thresher.kernels sees to it); sizes are checked here once more. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef _MSC_VER
#define __builtin_prefetch(...) /* a hint, which this compiler does not know */
#endif

/* -- sums over rows ----------------------------------------------------------------------------------------------- */

#define BLOCK 256    /* terms added up one after the other; their totals are added with compensation */
#define STRETCH 8192 /* numbers of a vector that stay in the cache while all columns are multiplied with them */
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* compiled for the machine at hand, too, where the linker can choose; wider vectors do the same operations */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define EVERY_MACHINE __attribute__((target_clones("default", "avx2")))
#else
#define EVERY_MACHINE
#endif

typedef double Doubles __attribute__((vector_size(4 * sizeof(double)), aligned(sizeof(double)), may_alias));

/* *sum + *carry grows by x, with an error of the order of the square of the round-off (Knuth's two-sum) */
static ALWAYS_INLINE void add_compensated(double *sum, double *carry, double x) {
    double total = *sum + x, part = total - *sum;
    double lost = (*sum - (total - part)) + (x - part);
    *sum = total;
    if (lost - lost == 0) *carry += lost; /* a sum that has overflowed stays infinite */
}

#define V double
#define NAME(f) f##_double
#include "_dense.h"
#define V float
#define NAME(f) f##_float
#include "_dense.h"

#define V double
#define I uint16_t
#define NAME(f) f##_double_16
#include "_columns.h"
#define V double
#define I uint32_t
#define NAME(f) f##_double_32
#include "_columns.h"
#define V double
#define I int64_t
#define NAME(f) f##_double_64
#include "_columns.h"
#define V float
#define I uint16_t
#define NAME(f) f##_float_16
#include "_columns.h"
#define V float
#define I uint32_t
#define NAME(f) f##_float_32
#include "_columns.h"
#define V float
#define I int64_t
#define NAME(f) f##_float_64
#include "_columns.h"

#include "_walk.h"
#define V double
#define NAME(f) f##_double
#include "_walk_values.h"
#define V float
#define NAME(f) f##_float
#include "_walk_values.h"

/* -- buffers ------------------------------------------------------------------------------------------------------ */

static Py_ssize_t count(const Py_buffer *b) { return b->len / b->itemsize; }

static int refuse(const char *what) {
    PyErr_SetString(PyExc_ValueError, what);
    return 0;
}

#define BY_KIND(f, values, rows, ...)                                                                                  \
    do {                                                                                                               \
        if ((values)->itemsize == 8) {                                                                                 \
            if ((rows)->itemsize == 2) f##_double_16((values)->buf, (rows)->buf, __VA_ARGS__);                         \
            else if ((rows)->itemsize == 4) f##_double_32((values)->buf, (rows)->buf, __VA_ARGS__);                    \
            else f##_double_64((values)->buf, (rows)->buf, __VA_ARGS__);                                               \
        } else {                                                                                                       \
            if ((rows)->itemsize == 2) f##_float_16((values)->buf, (rows)->buf, __VA_ARGS__);                          \
            else if ((rows)->itemsize == 4) f##_float_32((values)->buf, (rows)->buf, __VA_ARGS__);                     \
            else f##_float_64((values)->buf, (rows)->buf, __VA_ARGS__);                                                \
        }                                                                                                              \
    } while (0)

#define FLAGS(writable) (PyBUF_ND | ((writable) ? PyBUF_WRITABLE : 0))

/* buffers of the objects given; all of them or none */
static int open_all(PyObject *const *objects, Py_buffer *buffers, int howmany, int writable_from) {
    for (int i = 0; i < howmany; i++) {
        if (PyObject_GetBuffer(objects[i], buffers + i, FLAGS(i >= writable_from)) < 0) {
            while (i--) PyBuffer_Release(buffers + i);
            return 0;
        }
    }
    return 1;
}

static void close_all(Py_buffer *buffers, int howmany) {
    for (int i = 0; i < howmany; i++) PyBuffer_Release(buffers + i);
}

/* -- dense columns ------------------------------------------------------------------------------------------------ */

/* rows_times(columns of X, which of them, weights, out, first, last): rows first..last-1 of out = X[:, chosen] weights;
 * weights and out have one vector per output, and X is given column after column */
static PyObject *rows_times(PyObject *self, PyObject *args) {
    PyObject *objects[4];
    Py_buffer b[4];
    Py_ssize_t first, last;
    if (!PyArg_ParseTuple(args, "OOOOnn", objects, objects + 1, objects + 2, objects + 3, &first, &last)) return NULL;
    if (!open_all(objects, b, 4, 3)) return NULL;
    int fits = b[0].ndim == 2 && b[2].ndim == 2 && b[3].ndim == 2 && b[2].shape[0] == b[3].shape[0] &&
               b[2].shape[1] == count(b + 1) && b[3].shape[1] == b[0].shape[1] && first >= 0 && first <= last &&
               last <= b[0].shape[1];
    const int64_t *chosen = b[1].buf;
    for (Py_ssize_t at = 0; fits && at < count(b + 1); at++) fits = chosen[at] >= 0 && chosen[at] < b[0].shape[0];
    if (fits) {
        int64_t n = b[0].shape[1], columns = count(b + 1), outputs = b[2].shape[0];
        Py_BEGIN_ALLOW_THREADS
        if (b[0].itemsize == 8) rows_times_double(b[0].buf, n, chosen, b[2].buf, columns, outputs, b[3].buf, first, last);
        else rows_times_float(b[0].buf, n, chosen, b[2].buf, columns, outputs, b[3].buf, first, last);
        Py_END_ALLOW_THREADS
    } else refuse("rows_times: sizes do not fit");
    close_all(b, 4);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

/* squares(columns of X, out, first, last): out[i] = sum of the squares of row i for first <= i < last */
static PyObject *squares(PyObject *self, PyObject *args) {
    PyObject *objects[2];
    Py_buffer b[2];
    Py_ssize_t first, last;
    if (!PyArg_ParseTuple(args, "OOnn", objects, objects + 1, &first, &last)) return NULL;
    if (!open_all(objects, b, 2, 1)) return NULL;
    int fits = b[0].ndim == 2 && count(b + 1) == b[0].shape[1] && first >= 0 && first <= last && last <= b[0].shape[1];
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        if (b[0].itemsize == 8) squares_double(b[0].buf, b[0].shape[1], b[0].shape[0], b[1].buf, first, last);
        else squares_float(b[0].buf, b[0].shape[1], b[0].shape[0], b[1].buf, first, last);
        Py_END_ALLOW_THREADS
    } else refuse("squares: sizes do not fit");
    close_all(b, 2);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

/* run_dots(runs, r, out, carry, first, last): out[k, j] = <runs[j], r[k]> for first <= j < last; carry is room as large */
static PyObject *run_dots(PyObject *self, PyObject *args) {
    PyObject *objects[4];
    Py_buffer b[4];
    Py_ssize_t first, last;
    if (!PyArg_ParseTuple(args, "OOOOnn", objects, objects + 1, objects + 2, objects + 3, &first, &last)) return NULL;
    if (!open_all(objects, b, 4, 2)) return NULL;
    int fits = b[0].ndim == 2 && b[1].ndim == 2 && b[2].ndim == 2 && b[0].shape[1] == b[1].shape[1] &&
               b[2].shape[0] == b[1].shape[0] && b[2].shape[1] == b[0].shape[0] && b[3].len == b[2].len && first >= 0 &&
               first <= last && last <= b[0].shape[0];
    if (fits) {
        int64_t n = b[0].shape[1], d = b[0].shape[0], outputs = b[1].shape[0];
        Py_BEGIN_ALLOW_THREADS
        if (b[0].itemsize == 8) run_dots_double(b[0].buf, n, d, b[1].buf, outputs, b[2].buf, b[3].buf, first, last);
        else run_dots_float(b[0].buf, n, d, b[1].buf, outputs, b[2].buf, b[3].buf, first, last);
        Py_END_ALLOW_THREADS
    } else refuse("run_dots: sizes do not fit");
    close_all(b, 4);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

/* -- sparse columns ----------------------------------------------------------------------------------------------- */

/* column_dots(values, rows, starts, r, out, first, last): out[j] = <column j, r> for first <= j < last */
static PyObject *column_dots(PyObject *self, PyObject *args) {
    PyObject *objects[5];
    Py_buffer b[5];
    Py_ssize_t first, last;
    if (!PyArg_ParseTuple(args, "OOOOOnn", objects, objects + 1, objects + 2, objects + 3, objects + 4, &first, &last))
        return NULL;
    if (!open_all(objects, b, 5, 4)) return NULL;
    const int64_t *starts = b[2].buf;
    int fits = first >= 0 && first <= last && last < count(b + 2) && last <= count(b + 4) &&
               (last == first || starts[last] <= (count(b) < count(b + 1) ? count(b) : count(b + 1)));
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        BY_KIND(dots, b, b + 1, starts, b[3].buf, b[4].buf, first, last);
        Py_END_ALLOW_THREADS
    } else refuse("column_dots: sizes do not fit");
    close_all(b, 5);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

/* add_columns(values, rows, starts, columns, weights, out): out += sum of weight * column */
static PyObject *add_columns(PyObject *self, PyObject *args) {
    PyObject *objects[6];
    Py_buffer b[6];
    if (!PyArg_ParseTuple(args, "OOOOOO", objects, objects + 1, objects + 2, objects + 3, objects + 4, objects + 5))
        return NULL;
    if (!open_all(objects, b, 6, 5)) return NULL;
    const int64_t *chosen = b[3].buf;
    int fits = count(b + 3) == count(b + 4);
    for (Py_ssize_t at = 0; fits && at < count(b + 3); at++) fits = chosen[at] >= 0 && chosen[at] < count(b + 2) - 1;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        BY_KIND(add, b, b + 1, b[2].buf, chosen, b[4].buf, count(b + 3), b[5].buf);
        Py_END_ALLOW_THREADS
    } else refuse("add_columns: sizes do not fit");
    close_all(b, 6);
    if (!fits) return NULL;
    Py_RETURN_NONE;
}

/* -- the walk ----------------------------------------------------------------------------------------------------- */

enum { COLUMN_VALUES, ROW_OF, BY_COLUMN, SCALES, KNOTS, SLOPES, CONSTANTS, KEPT };
enum { SIGNS = KEPT, OFFSETS, SHARES, SLACKS, GIVEN };

typedef struct {
    PyObject_HEAD
    State s;
    Py_buffer kept[KEPT];
    int open;
} WalkObject;

#define BY_VALUES(s, f, ...) ((s)->single ? f##_float(__VA_ARGS__) : f##_double(__VA_ARGS__))

static void drop(WalkObject *self) {
    State *s = &self->s;
    PyMem_Free(s->columns), PyMem_Free(s->slacks), PyMem_Free(s->rows), PyMem_Free(s->order);
    PyMem_Free(s->calendar), PyMem_Free(s->due_work), PyMem_Free(s->by_row), PyMem_Free(s->entries);
    memset(s, 0, sizeof *s);
    if (self->open) close_all(self->kept, KEPT);
    self->open = 0;
}

static int allocate(State *s) {
    s->columns = PyMem_Calloc((size_t)s->d + 1, sizeof(Column));
    s->slacks = PyMem_Calloc((size_t)s->d + 1, sizeof(double));
    s->rows = PyMem_Calloc((size_t)s->n + 1, sizeof(Row));
    s->order = PyMem_Calloc((size_t)s->d + 1, sizeof(int32_t));
    s->calendar = PyMem_Calloc((size_t)s->steps + 1, sizeof(int32_t));
    s->due_work = PyMem_Calloc((size_t)s->steps + 1, sizeof(int64_t));
    s->by_row = PyMem_Calloc((size_t)s->n + 1, sizeof(int64_t));
    s->entries = PyMem_Malloc((size_t)(s->by_column[s->d] + 1) * (s->single ? sizeof(Entry_float) : sizeof(Entry_double)));
    if (s->columns && s->slacks && s->rows && s->order && s->calendar && s->due_work && s->by_row && s->entries) return 1;
    PyErr_NoMemory();
    return 0;
}

static void fill(State *s, const Py_buffer *given) {
    const double *signs = given[SIGNS].buf, *offsets = given[OFFSETS].buf, *shares = given[SHARES].buf;
    for (int64_t i = 0; i < s->n; i++) {
        s->rows[i].sign = signs[i] < 0 ? -1 : 1;
        s->rows[i].offset = offsets[i];
        s->rows[i].share = shares[i];
        s->rows[i].due = -1;
    }
    memcpy(s->slacks, given[SLACKS].buf, (size_t)s->d * sizeof(double));
    for (int64_t t = 0; t <= s->steps; t++) s->calendar[t] = -1;
    s->scale = s->scales[0];
    BY_VALUES(s, arrange, s);
}

static int fits_together(const State *s, const Py_buffer *b) {
    return b[SCALES].len > 0 && s->pieces > 0 && count(b + SLOPES) == count(b + CONSTANTS) &&
           count(b + KNOTS) == s->pieces - 1 && count(b + OFFSETS) == s->n &&
           count(b + SHARES) == s->n && count(b + SLACKS) == s->d && s->n < INT32_MAX && s->d < INT32_MAX &&
           s->by_column[s->d] <= count(b + COLUMN_VALUES) && s->by_column[s->d] <= count(b + ROW_OF) &&
           b[ROW_OF].itemsize == 4;
}

/* Walk(values, rows, starts of columns, scales, knots, slopes, constants, signs, offsets, shares, slacks, kappa, kappa of
 *      the constant column or a negative number, clip, logistic) */
static int walk_init(PyObject *object, PyObject *args, PyObject *names) {
    WalkObject *self = (WalkObject *)object;
    State *s = &self->s;
    PyObject *o[GIVEN];
    Py_buffer b[GIVEN];
    double kappa, of_constant, clip;
    int logistic;
    drop(self);
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOOdddp", o, o + 1, o + 2, o + 3, o + 4, o + 5, o + 6, o + 7, o + 8, o + 9,
                          o + 10, &kappa, &of_constant, &clip, &logistic))
        return -1;
    if (!open_all(o, b, GIVEN, GIVEN)) return -1;
    memcpy(self->kept, b, sizeof self->kept);
    self->open = 1;
    s->column_values = b[COLUMN_VALUES].buf, s->single = b[COLUMN_VALUES].itemsize == 4;
    s->row_of = b[ROW_OF].buf, s->by_column = b[BY_COLUMN].buf;
    s->scales = b[SCALES].buf, s->knots = b[KNOTS].buf, s->slopes = b[SLOPES].buf, s->constants = b[CONSTANTS].buf;
    s->d = count(b + BY_COLUMN) - 1, s->n = count(b + SIGNS);
    s->steps = count(b + SCALES) - 1, s->pieces = count(b + SLOPES);
    s->kappa = kappa, s->kappa_of_constant = of_constant, s->has_constant = of_constant >= 0;
    s->clip = clip, s->logistic = logistic;
    int good = fits_together(s, b) || refuse("Walk: sizes do not fit");
    good = good && allocate(s);
    if (good) fill(s, b);
    close_all(b + KEPT, GIVEN - KEPT);
    if (!good) drop(self);
    return good ? 0 : -1;
}

static void walk_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    drop((WalkObject *)object);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

static State *state_of(PyObject *self) { return &((WalkObject *)self)->s; }

/* refresh(): the stand-in of every column from scratch, at the margins and the scale now */
static PyObject *walk_refresh(PyObject *self, PyObject *none) {
    State *s = state_of(self);
    BY_VALUES(s, refresh, s);
    Py_RETURN_NONE;
}

/* sort(step): bounds that hold until that step */
static PyObject *walk_sort(PyObject *self, PyObject *step) {
    State *s = state_of(self);
    long long until = PyLong_AsLongLong(step);
    if (until == -1 && PyErr_Occurred()) return NULL;
    if (!s->scales) return refuse("sort: a walk that was never started"), NULL;
    if (until < s->step) until = s->step;
    sort_columns(s, s->scales[until > s->steps ? s->steps : until]);
    Py_RETURN_NONE;
}

/* give(gradient): the gradient at the margins and the scale now, in place of the stand-in */
static PyObject *walk_give(PyObject *self, PyObject *gradient) {
    State *s = state_of(self);
    Py_buffer b;
    if (!open_all(&gradient, &b, 1, 1)) return NULL;
    int fits = count(&b) == s->d && b.itemsize == 8;
    for (int64_t j = 0; fits && j < s->d; j++) s->columns[j].A = 0, s->columns[j].D = ((double *)b.buf)[j];
    s->exact = 1;
    PyBuffer_Release(&b);
    if (!fits) return refuse("give: sizes do not fit"), NULL;
    Py_RETURN_NONE;
}

/* margins(out): X theta */
static PyObject *walk_margins(PyObject *self, PyObject *out) {
    State *s = state_of(self);
    Py_buffer b;
    if (!open_all(&out, &b, 1, 0)) return NULL;
    int fits = count(&b) == s->n && b.itemsize == 8;
    for (int64_t i = 0; fits && i < s->n; i++) ((double *)b.buf)[i] = s->scale * s->rows[i].margin;
    PyBuffer_Release(&b);
    if (!fits) return refuse("margins: sizes do not fit"), NULL;
    Py_RETURN_NONE;
}

/* work(column): stored entries that a move towards this column would read */
static PyObject *walk_work(PyObject *self, PyObject *column) {
    State *s = state_of(self);
    long long j = PyLong_AsLongLong(column);
    if (j == -1 && PyErr_Occurred()) return NULL;
    if (j < 0 || j >= s->d || s->step >= s->steps) return refuse("work: no such column, or no step left"), NULL;
    int64_t work = s->due_work[s->step + 1];
    for (int64_t k = s->by_column[j]; k < s->by_column[j + 1]; k++) work += s->rows[s->row_of[k]].length;
    return PyLong_FromLongLong(work);
}

static PyObject *step_by(PyObject *self, PyObject *args, int lazily) {
    State *s = state_of(self);
    Py_ssize_t j;
    double weight;
    if (!PyArg_ParseTuple(args, "nd", &j, &weight)) return NULL;
    if (j < 0 || j >= s->d || s->step >= s->steps) return refuse("no such column, or no step left"), NULL;
    if (lazily) BY_VALUES(s, move, s, j, weight);
    else BY_VALUES(s, shift, s, j, weight);
    Py_RETURN_NONE;
}

/* move(column, weight): the coefficient of the column grows by weight times the next scale, and all else follows */
static PyObject *walk_move(PyObject *self, PyObject *args) { return step_by(self, args, 1); }

/* shift(column, weight): the same for the margins alone; refresh() or give() must follow */
static PyObject *walk_shift(PyObject *self, PyObject *args) { return step_by(self, args, 0); }

/* Rejection: a level by the weight its columns may have, one of them, accepted with what it really weighs. The exact
 * gradient is only computed where the stand-in leaves the answer open. */
static int accepted(State *s, int64_t j, int level, double u, double *gradient) {
    double kappa = kappa_of(s, j), slack = slack_of(s, j), size = fabs(*gradient);
    u *= s->weights[level];
    if (u >= weight_of(kappa * (size + slack), s->top)) return 0;
    if (slack == 0 || u < weight_of(kappa * (size > slack ? size - slack : 0), s->top)) return 1;
    *gradient = BY_VALUES(s, gradient_of, s, j);
    return u < weight_of(kappa * fabs(*gradient), s->top);
}

/* whether the coefficient goes down, which has probability 1 / (1 + exp(-2 kappa gradient)) */
static int goes_down(State *s, int64_t j, double u, double gradient) {
    double kappa = kappa_of(s, j), slack = slack_of(s, j);
    double odds = log(u) - log1p(-u); /* of that uniform number: down if below 2 kappa gradient */
    if (odds < 2 * kappa * (gradient - slack)) return 1;
    if (slack == 0 || odds >= 2 * kappa * (gradient + slack)) return 0;
    return odds < 2 * kappa * BY_VALUES(s, gradient_of, s, j);
}

/* draw(uniforms): (how many were used, column or -1 if they did not suffice, whether its coefficient goes down) */
static PyObject *walk_draw(PyObject *self, PyObject *uniforms) {
    State *s = state_of(self);
    Py_buffer b;
    if (!open_all(&uniforms, &b, 1, 1)) return NULL;
    const double *u = b.buf;
    Py_ssize_t used = 0, column = -1;
    int down = 0;
    while (column < 0 && used + 4 <= count(&b)) {
        double total = 0, weights[LEVELS];
        for (int l = 0; l < LEVELS; l++) total += weights[l] = s->weights[l] * (double)(s->starts[l + 1] - s->starts[l]);
        double left = u[used] * total;
        int level = 0;
        while (level < LEVELS - 1 && left >= weights[level]) left -= weights[level++];
        int64_t inside = s->starts[level + 1] - s->starts[level];
        if (inside > 0) { /* else round-off has led past the last level that holds a column */
            int64_t at = (int64_t)(u[used + 1] * (double)inside);
            int64_t j = s->order[s->starts[level] + (at < inside ? at : inside - 1)];
            double gradient = stand_in(s, j);
            if (accepted(s, j, level, u[used + 2], &gradient)) column = j, down = goes_down(s, j, u[used + 3], gradient);
        }
        used += 4;
    }
    PyBuffer_Release(&b);
    return Py_BuildValue("nnO", used, column, down ? Py_True : Py_False);
}

/* stand_ins(): what is followed of the gradient, and how far off it may be; bytes of doubles */
static PyObject *walk_stand_ins(PyObject *self, PyObject *none) {
    State *s = state_of(self);
    PyObject *values = PyBytes_FromStringAndSize(NULL, s->d * (Py_ssize_t)sizeof(double));
    PyObject *slacks = PyBytes_FromStringAndSize(NULL, s->d * (Py_ssize_t)sizeof(double));
    if (!values || !slacks) {
        Py_XDECREF(values), Py_XDECREF(slacks);
        return NULL;
    }
    for (int64_t j = 0; j < s->d; j++) {
        double value = stand_in(s, j), slack = slack_of(s, j);
        memcpy(PyBytes_AsString(values) + j * sizeof(double), &value, sizeof(double));
        memcpy(PyBytes_AsString(slacks) + j * sizeof(double), &slack, sizeof(double));
    }
    return Py_BuildValue("NN", values, slacks);
}

static PyMethodDef walk_methods[] = {
    {"refresh", walk_refresh, METH_NOARGS, NULL}, {"sort", walk_sort, METH_O, NULL},
    {"give", walk_give, METH_O, NULL},            {"margins", walk_margins, METH_O, NULL},
    {"work", walk_work, METH_O, NULL},            {"move", walk_move, METH_VARARGS, NULL},
    {"shift", walk_shift, METH_VARARGS, NULL},    {"draw", walk_draw, METH_O, NULL},
    {"stand_ins", walk_stand_ins, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot walk_slots[] = {
    {Py_tp_init, walk_init}, {Py_tp_dealloc, walk_dealloc}, {Py_tp_methods, walk_methods}, {0, NULL},
};

static PyType_Spec walk_spec = {"thresher.kernels._kernels.Walk", sizeof(WalkObject), 0, Py_TPFLAGS_DEFAULT, walk_slots};

/* -- the module --------------------------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"rows_times", rows_times, METH_VARARGS, NULL},
    {"squares", squares, METH_VARARGS, NULL},
    {"run_dots", run_dots, METH_VARARGS, NULL},
    {"column_dots", column_dots, METH_VARARGS, NULL},
    {"add_columns", add_columns, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernels", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void) {
    PyObject *m = PyModule_Create(&module);
    PyObject *walk = m ? PyType_FromSpec(&walk_spec) : NULL;
    if (!walk || PyModule_AddObjectRef(m, "Walk", walk) < 0) {
        Py_XDECREF(walk), Py_XDECREF(m);
        return NULL;
    }
    Py_DECREF(walk);
    return m;
}
