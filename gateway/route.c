#include "gateway/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"

enum segment_kind { SEGMENT_LITERAL, SEGMENT_VAR, SEGMENT_REST };

struct segment {
    enum segment_kind kind;
    struct str text;   /* literal */
    struct str name;   /* variable */
    struct str suffix; /* ":verb" behind a variable */
};

/* A route and the names that its template gives the variables on the way to its leaf. */
struct entry {
    const struct route *route;
    struct str names[ROUTE_VARS_MAX];
};

struct node;

struct children {
    struct node **v;
    size_t n;
    size_t cap;
};

/* Templates that differ only in the names of variables share their nodes. */
struct node {
    struct str text;          /* literal, or the suffix of a variable */
    struct children literals; /* by text */
    struct children vars;     /* longest suffix first */
    struct node *rest;
    bool is_rest; /* stands for the whole tail */
    const struct entry **entries;
    size_t n_entries;
};

struct route_table {
    struct arena arena;
    struct node root;
};

/* ---------------------------------------------------------------- templates */

static bool is_variable_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                  (i != 0 && ((c >= '0' && c <= '9') || c == '-'));

        if (!ok)
            return false;
    }
    return s.n != 0;
}

/* Literals are compared with decoded segments, so an escape in one would never match. */
static bool is_literal(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c <= 0x20 || c == 0x7f || c == '{' || c == '}' || c == '%' || c == '?' || c == '#')
            return false;
    }
    return true;
}

static bool parse_segment(struct str s, struct segment *out)
{
    size_t close = str_find(s, '}');
    struct str inner;

    *out = (struct segment){.kind = SEGMENT_LITERAL, .text = s};
    if (s.n == 0 || s.p[0] != '{')
        return is_literal(s);
    if (close == s.n)
        return false;
    inner = str_sub(s, 1, close);
    out->suffix = str_sub(s, close + 1, s.n);
    out->kind = SEGMENT_VAR;
    if (str_ends(inner, STR("=**"))) {
        out->kind = SEGMENT_REST;
        inner = str_sub(inner, 0, inner.n - 3);
    }
    out->name = inner;
    return is_variable_name(inner) && is_literal(out->suffix) &&
           (out->suffix.n == 0 || (out->suffix.p[0] == ':' && out->kind == SEGMENT_VAR));
}

/* The segments behind the leading '/'; false ends. */
static bool next_segment(struct str *rest, struct str *segment)
{
    if (rest->p == NULL)
        return false;
    *segment = str_cut(*rest, '/', rest);
    return true;
}

/* What next_segment starts with: "/" has one empty segment, the empty text none. */
static struct str behind_slash(struct str path)
{
    return path.n != 0 ? (struct str){path.p + 1, path.n - 1} : STR_NONE;
}

static bool check_name(struct str name, struct str *names, size_t *n, struct err *e)
{
    for (size_t i = 0; i < *n; i++) {
        if (str_eq(names[i], name)) {
            err_set(e, "the variable {" STR_FMT "} comes twice", STR_ARG(name));
            return false;
        }
    }
    if (*n == ROUTE_VARS_MAX) {
        err_set(e, "more than %d variables", ROUTE_VARS_MAX);
        return false;
    }
    names[(*n)++] = name;
    return true;
}

bool route_template_check(struct str path, struct err *e)
{
    struct str rest = behind_slash(path);
    struct str names[ROUTE_VARS_MAX];
    struct segment seg;
    struct str s;
    size_t n = 0;
    size_t n_vars = 0;

    while (next_segment(&rest, &s)) {
        if (s.n > 1 && s.p[0] == ':') {
            err_set(e, "\"" STR_FMT "\" is no variable here; write {" STR_FMT "}", STR_ARG(s),
                    STR_ARG(str_sub(s, 1, s.n)));
            return false;
        }
        if (++n > ROUTE_SEGMENTS_MAX || !parse_segment(s, &seg)) {
            err_set(e, "\"" STR_FMT "\" is not a path template such as /users/{id}", STR_ARG(path));
            return false;
        }
        if (seg.kind == SEGMENT_LITERAL)
            continue;
        if (seg.kind == SEGMENT_REST && rest.p != NULL) {
            err_set(e, "{" STR_FMT "=**} must be the last segment", STR_ARG(seg.name));
            return false;
        }
        if (!check_name(seg.name, names, &n_vars, e))
            return false;
    }
    return true;
}

bool route_template_has(struct str path, struct str variable)
{
    struct str rest = behind_slash(path);
    struct segment seg;
    struct str s;

    while (next_segment(&rest, &s)) {
        if (parse_segment(s, &seg) && seg.kind != SEGMENT_LITERAL && str_eq(seg.name, variable))
            return true;
    }
    return false;
}

bool route_template_same(struct str a, struct str b)
{
    struct str x = behind_slash(a);
    struct str y = behind_slash(b);
    struct str sx;
    struct str sy;

    for (;;) {
        bool more_x = next_segment(&x, &sx);
        bool more_y = next_segment(&y, &sy);
        struct segment p;
        struct segment q;

        if (!more_x || !more_y)
            return more_x == more_y;
        if (!parse_segment(sx, &p) || !parse_segment(sy, &q) || p.kind != q.kind ||
            (p.kind == SEGMENT_LITERAL && !str_eq(p.text, q.text)) || !str_eq(p.suffix, q.suffix))
            return false;
    }
}

/* ---------------------------------------------------------------- building */

/* The order of variables: "{id}:a:lock" before "{id}:lock" before "{id}". */
static int compare_suffix(struct str a, struct str b)
{
    if (a.n != b.n)
        return a.n > b.n ? -1 : 1;
    return str_cmp(a, b);
}

/* The first child that is not before `text`. */
static size_t lower_bound(const struct children *c, struct str text,
                          int (*compare)(struct str, struct str))
{
    size_t lo = 0;
    size_t hi = c->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (compare(c->v[mid]->text, text) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct node *child(struct route_table *t, struct children *c, struct str text,
                          int (*compare)(struct str, struct str))
{
    size_t at = lower_bound(c, text, compare);
    struct node *n = NULL;

    if (at < c->n && str_eq(c->v[at]->text, text))
        return c->v[at];
    if (c->n == c->cap) {
        size_t cap = c->cap != 0 ? c->cap * 2 : 4;
        struct node **v = arena_alloc(&t->arena, cap * sizeof(struct node *));

        if (c->n != 0)
            memcpy(v, c->v, c->n * sizeof(struct node *));
        c->v = v;
        c->cap = cap;
    }
    n = arena_alloc(&t->arena, sizeof(*n));
    n->text = text;
    memmove(c->v + at + 1, c->v + at, (c->n - at) * sizeof(struct node *));
    c->v[at] = n;
    c->n++;
    return n;
}

static struct node *step(struct route_table *t, struct node *n, const struct segment *seg)
{
    switch (seg->kind) {
    case SEGMENT_LITERAL:
        return child(t, &n->literals, seg->text, &str_cmp);
    case SEGMENT_VAR:
        return child(t, &n->vars, seg->suffix, &compare_suffix);
    case SEGMENT_REST:
        break;
    }
    if (n->rest == NULL)
        n->rest = arena_alloc(&t->arena, sizeof(*n->rest));
    n->rest->is_rest = true;
    return n->rest;
}

static void add_route(struct route_table *t, const struct route *r)
{
    struct entry *e = arena_alloc(&t->arena, sizeof(*e));
    struct str rest = behind_slash(r->path);
    struct node *n = &t->root;
    const struct entry **bigger = NULL;
    struct segment seg;
    struct str s;
    size_t n_vars = 0;

    e->route = r;
    while (next_segment(&rest, &s)) {
        if (!parse_segment(s, &seg) || n_vars == ROUTE_VARS_MAX)
            return; /* the configuration check has refused it */
        if (seg.kind != SEGMENT_LITERAL)
            e->names[n_vars++] = seg.name;
        n = step(t, n, &seg);
    }
    bigger = arena_alloc(&t->arena, (n->n_entries + 1) * sizeof(struct entry *));
    if (n->n_entries != 0)
        memcpy(bigger, n->entries, n->n_entries * sizeof(struct entry *));
    bigger[n->n_entries] = e;
    n->entries = bigger;
    n->n_entries++;
}

struct route_table *route_table_build(const struct settings *s)
{
    struct route_table *t = xcalloc(1, sizeof(*t));

    arena_init(&t->arena);
    for (size_t i = 0; i < s->n_routes; i++)
        add_route(t, &s->routes[i]);
    return t;
}

void route_table_free(struct route_table *t)
{
    if (t == NULL)
        return;
    arena_free(&t->arena);
    free(t);
}

/* ---------------------------------------------------------------- the path of a request */

struct path {
    struct str segments[ROUTE_SEGMENTS_MAX]; /* decoded */
    struct str tails[ROUTE_SEGMENTS_MAX];    /* raw, from this segment to the end */
    size_t n;
    bool longer; /* than any template: only {var=**} may take the rest */
};

static bool has_control(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return true;
    }
    return false;
}

static bool decode(struct str raw, struct arena *a, struct str *out)
{
    return request_decode(raw, false, a, out) && !has_control(*out);
}

static bool split(struct str raw, struct arena *a, struct path *p)
{
    struct str rest = behind_slash(raw);
    struct str s;

    p->n = 0;
    p->longer = false;
    for (;;) {
        struct str tail = rest;

        if (!next_segment(&rest, &s))
            return true;
        if (p->n == ROUTE_SEGMENTS_MAX) {
            p->longer = true;
            return true;
        }
        p->tails[p->n] = tail;
        if (!decode(s, a, &p->segments[p->n]))
            return false;
        p->n++;
    }
}

/* ---------------------------------------------------------------- hosts */

/* Host without its port; an IPv6 address keeps its brackets. */
static struct str host_name(struct str host)
{
    size_t from = host.n != 0 && host.p[0] == '[' ? str_find(host, ']') : 0;
    size_t colon = from + str_find(str_sub(host, from, host.n), ':');

    return str_sub(host, 0, colon);
}

/* 0: not for this host; else the more the more closely it names it.  1: for every host. */
static size_t host_score(const struct route *r, struct str name)
{
    size_t best = r->hosts.n == 0 ? 1 : 0;

    for (size_t i = 0; i < r->hosts.n; i++) {
        struct str want = r->hosts.v[i];
        struct str tail = str_sub(want, 1, want.n);
        size_t score = 0;

        if (str_eq_nocase(want, name))
            score = SIZE_MAX;
        else if (str_starts(want, STR("*.")) && name.n > tail.n &&
                 str_eq_nocase(str_sub(name, name.n - tail.n, name.n), tail))
            score = want.n;
        if (score > best)
            best = score;
    }
    return best;
}

/* ---------------------------------------------------------------- matching */

struct walk {
    const struct path *path;
    struct str host;
    struct str values[ROUTE_VARS_MAX]; /* of the variables, in order; {var=**} still encoded */
    size_t n_values;
};

static bool is_leaf(const struct node *n, struct str host)
{
    for (size_t i = 0; i < n->n_entries; i++) {
        if (host_score(n->entries[i]->route, host) != 0)
            return true;
    }
    return false;
}

/* The first leaf by precedence.  A node is visited at most once: its place in the tree fixes the segments
 * before it. */
static const struct node *descend(struct walk *w, const struct node *n, size_t at)
{
    const struct path *p = w->path;
    const struct node *leaf = NULL;
    struct str s;
    size_t i = 0;

    if (at == p->n)
        return !p->longer && is_leaf(n, w->host) ? n : NULL;
    s = p->segments[at];
    i = lower_bound(&n->literals, s, &str_cmp);
    if (i < n->literals.n && str_eq(n->literals.v[i]->text, s))
        leaf = descend(w, n->literals.v[i], at + 1);
    for (i = 0; i < n->vars.n && leaf == NULL && w->n_values < ROUTE_VARS_MAX; i++) {
        struct str suffix = n->vars.v[i]->text;

        if (s.n <= suffix.n || !str_ends(s, suffix))
            continue;
        w->values[w->n_values++] = str_sub(s, 0, s.n - suffix.n);
        leaf = descend(w, n->vars.v[i], at + 1);
        w->n_values -= leaf == NULL ? 1U : 0U;
    }
    if (leaf != NULL || n->rest == NULL || w->n_values == ROUTE_VARS_MAX ||
        !is_leaf(n->rest, w->host))
        return leaf;
    w->values[w->n_values++] = p->tails[at];
    return n->rest;
}

static void print_allow(unsigned methods, struct problem *p)
{
    size_t n = 0;

    for (unsigned i = 0; i < HTTP_METHODS; i++) {
        if ((methods & (1U << i)) != 0)
            n += (size_t)snprintf(p->allow + n, sizeof(p->allow) - n, "%s, ", http_method_names[i]);
    }
    snprintf(p->allow + n, sizeof(p->allow) - n, "OPTIONS");
}

/* Among the routes of one path: method and host; the closer host wins. */
static const struct entry *choose(const struct node *leaf, const struct request *r, struct str host,
                                  unsigned *methods)
{
    const struct entry *best = NULL;
    size_t best_score = 0;
    bool head = str_is(r->method, "HEAD");

    *methods = 0;
    for (size_t i = 0; i < leaf->n_entries; i++) {
        const struct route *x = leaf->entries[i]->route;
        size_t score = host_score(x, host);
        bool exact = str_is(r->method, http_method_names[x->method]);

        if (score == 0)
            continue;
        *methods |= 1U << x->method;
        if (x->method == HTTP_GET)
            *methods |= 1U << HTTP_HEAD;
        if (!exact && !(head && x->method == HTTP_GET))
            continue;
        if (score > best_score || (score == best_score && exact)) {
            best = leaf->entries[i];
            best_score = score;
        }
    }
    return best;
}

/* A trailing slash too much or too little is the usual reason. */
static void not_found(const struct route_table *t, struct str raw, struct str host,
                      const struct path *p, struct problem *problem)
{
    struct path other = *p;
    struct walk w = {.path = &other, .host = host};
    bool cut = p->n > 1 && p->segments[p->n - 1].n == 0;

    problem_set(problem, OUTCOME_ROUTE_NOT_FOUND, "no route for this path");
    if (p->longer || p->n == 0 || (!cut && p->n == ROUTE_SEGMENTS_MAX))
        return;
    if (cut) {
        other.n--;
    } else {
        other.segments[other.n] = STR("");
        other.tails[other.n++] = STR("");
    }
    if (raw.n < 256 && descend(&w, &t->root, 0) != NULL)
        problem_set(problem, OUTCOME_ROUTE_NOT_FOUND,
                    "no route for this path, but there is one for " STR_FMT "%s",
                    STR_ARG(str_sub(raw, 0, cut ? raw.n - 1 : raw.n)), cut ? "" : "/");
}

static enum route_result refuse_path(struct problem *p)
{
    problem_set(p, OUTCOME_BAD_REQUEST,
                "the path is not percent-encoded UTF-8 without control characters");
    return ROUTE_BAD;
}

enum route_result route_match(const struct route_table *t, const struct request *r, struct arena *a,
                              struct route_match *m, struct problem *p)
{
    UNFILLED struct path path;
    struct walk w = {.path = &path};
    const struct node *leaf = NULL;
    const struct entry *e = NULL;
    unsigned methods = 0;

    m->n_vars = 0;
    m->route = NULL;
    m->head = str_is(r->method, "HEAD");
    if (!split(r->path, a, &path))
        return refuse_path(p);
    w.host = host_name(request_header(r, STR("Host")));
    leaf = descend(&w, &t->root, 0);
    if (leaf == NULL)
        return ROUTE_NONE;
    e = choose(leaf, r, w.host, &methods);
    if (e == NULL) {
        print_allow(methods, p);
        if (str_is(r->method, "OPTIONS"))
            return ROUTE_OPTIONS;
        problem_set(p, OUTCOME_METHOD_NOT_ALLOWED, "this path takes %s", p->allow);
        return ROUTE_METHOD;
    }
    if (leaf->is_rest && !decode(w.values[w.n_values - 1], a, &w.values[w.n_values - 1]))
        return refuse_path(p);
    m->route = e->route;
    m->n_vars = w.n_values;
    for (size_t i = 0; i < w.n_values; i++)
        m->vars[i] = (struct route_var){e->names[i], w.values[i]};
    return ROUTE_FOUND;
}

void route_not_found(const struct route_table *t, const struct request *r, struct arena *a,
                     struct problem *p)
{
    UNFILLED struct path path;

    if (split(r->path, a, &path))
        not_found(t, r->path, host_name(request_header(r, STR("Host"))), &path, p);
}

struct str route_var(const struct route_match *m, struct str name)
{
    for (size_t i = 0; i < m->n_vars; i++) {
        if (str_eq(m->vars[i].name, name))
            return m->vars[i].value.p != NULL ? m->vars[i].value : STR("");
    }
    return STR_NONE;
}
