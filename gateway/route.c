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

struct node {
    struct segment segment; /* how to get here */
    struct node *next;      /* sibling */
    struct node *literals;
    struct node *vars;
    struct node *rest;
    const struct route **routes;
    size_t n_routes;
};

struct route_table {
    struct arena arena;
    struct node root;
};

/* ---------------------------------------------------------------- templates */

static bool parse_segment(struct str s, struct segment *out)
{
    size_t close = str_find(s, '}');
    struct str inner = STR_NONE;

    *out = (struct segment){.kind = SEGMENT_LITERAL, .text = s};
    if (s.n == 0 || s.p[0] != '{')
        return str_find(s, '{') == s.n && close == s.n;
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
    for (size_t i = 0; i < inner.n; i++) {
        char c = inner.p[i];
        bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                  (i != 0 && ((c >= '0' && c <= '9') || c == '-'));

        if (!ok)
            return false;
    }
    return inner.n != 0 && (out->suffix.n == 0 || out->suffix.p[0] == ':') &&
           (out->kind == SEGMENT_VAR || out->suffix.n == 0);
}

/* The segments behind the leading '/'; false ends. */
static bool next_segment(struct str *rest, struct str *segment)
{
    if (rest->p == NULL)
        return false;
    *segment = str_cut(*rest, '/', rest);
    return true;
}

bool route_template_check(struct str path, struct err *e)
{
    struct str rest = str_sub(path, 1, path.n);
    struct str names[ROUTE_VARS_MAX];
    struct segment seg;
    struct str s;
    size_t n = 0;
    size_t n_vars = 0;

    rest.p = rest.p != NULL ? rest.p : "";
    while (next_segment(&rest, &s)) {
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
        for (size_t i = 0; i < n_vars; i++) {
            if (str_eq(names[i], seg.name)) {
                err_set(e, "the variable {" STR_FMT "} comes twice", STR_ARG(seg.name));
                return false;
            }
        }
        if (n_vars == ROUTE_VARS_MAX) {
            err_set(e, "more than %d variables", ROUTE_VARS_MAX);
            return false;
        }
        names[n_vars++] = seg.name;
    }
    return true;
}

bool route_template_has(struct str path, struct str variable)
{
    struct str rest = str_sub(path, 1, path.n);
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
    struct str x = str_sub(a, 1, a.n);
    struct str y = str_sub(b, 1, b.n);
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

static struct node *child(struct route_table *t, struct node **list, const struct segment *seg)
{
    struct node *n = NULL;

    for (struct node *c = *list; c != NULL; c = c->next) {
        if ((seg->kind == SEGMENT_LITERAL && str_eq(c->segment.text, seg->text)) ||
            (seg->kind != SEGMENT_LITERAL && str_eq(c->segment.suffix, seg->suffix) &&
             str_eq(c->segment.name, seg->name)))
            return c;
    }
    n = arena_alloc(&t->arena, sizeof(*n));
    n->segment = *seg;
    n->next = *list;
    /* variables with a verb come before those without */
    if (seg->kind == SEGMENT_VAR && seg->suffix.n == 0 && *list != NULL) {
        struct node *last = *list;

        while (last->next != NULL)
            last = last->next;
        n->next = NULL;
        last->next = n;
        return n;
    }
    *list = n;
    return n;
}

static void add_route(struct route_table *t, const struct route *r)
{
    struct str rest = str_sub(r->path, 1, r->path.n);
    struct node *n = &t->root;
    struct segment seg;
    struct str s;
    const struct route **bigger = NULL;

    rest.p = rest.p != NULL ? rest.p : "";
    while (next_segment(&rest, &s)) {
        if (!parse_segment(s, &seg))
            return; /* the configuration check has refused it */
        if (seg.kind == SEGMENT_LITERAL)
            n = child(t, &n->literals, &seg);
        else
            n = child(t, seg.kind == SEGMENT_VAR ? &n->vars : &n->rest, &seg);
    }
    bigger = arena_alloc(&t->arena, (n->n_routes + 1) * sizeof(struct route *));
    if (n->n_routes != 0)
        memcpy(bigger, n->routes, n->n_routes * sizeof(struct route *));
    bigger[n->n_routes] = r;
    n->routes = bigger;
    n->n_routes++;
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

/* ---------------------------------------------------------------- matching */

struct path {
    struct str segments[ROUTE_SEGMENTS_MAX]; /* decoded */
    size_t n;
    struct str tails[ROUTE_SEGMENTS_MAX]; /* raw, from this segment to the end */
};

/* The first leaf, by precedence; variables are noted on the way back. */
static const struct node *descend(const struct node *n, const struct path *p, size_t at,
                                  struct route_match *m)
{
    const struct node *leaf = NULL;

    if (at == p->n)
        return n->n_routes != 0 ? n : NULL;
    for (const struct node *c = n->literals; c != NULL; c = c->next) {
        if (!str_eq(c->segment.text, p->segments[at]))
            continue;
        leaf = descend(c, p, at + 1, m);
        if (leaf != NULL)
            return leaf;
    }
    for (const struct node *c = n->vars; c != NULL; c = c->next) {
        struct str s = p->segments[at];

        if (s.n <= c->segment.suffix.n || !str_ends(s, c->segment.suffix) ||
            m->n_vars == ROUTE_VARS_MAX)
            continue;
        m->vars[m->n_vars++] = (struct route_var){c->segment.name,
                                                  str_sub(s, 0, s.n - c->segment.suffix.n)};
        leaf = descend(c, p, at + 1, m);
        if (leaf != NULL)
            return leaf;
        m->n_vars--;
    }
    if (n->rest == NULL || m->n_vars == ROUTE_VARS_MAX)
        return NULL;
    m->vars[m->n_vars++] = (struct route_var){n->rest->segment.name, p->tails[at]};
    return n->rest;
}

static bool split(struct str raw, struct arena *a, struct path *p)
{
    struct str rest = str_sub(raw, 1, raw.n);
    struct str s;

    p->n = 0;
    rest.p = rest.p != NULL ? rest.p : raw.p + 1;
    for (;;) {
        struct str tail = rest;

        if (!next_segment(&rest, &s))
            return true;
        if (p->n == ROUTE_SEGMENTS_MAX)
            return true; /* longer than any route: it will not be found */
        p->tails[p->n] = tail;
        if (!request_decode(s, false, a, &p->segments[p->n]))
            return false;
        p->n++;
    }
}

static bool host_fits(const struct route *r, struct str host)
{
    struct str rest;
    struct str name = host.n != 0 && host.p[0] == '[' ? host : str_cut(host, ':', &rest);

    if (r->hosts.n == 0)
        return true;
    for (size_t i = 0; i < r->hosts.n; i++) {
        struct str want = r->hosts.v[i];

        if (str_eq_nocase(want, name))
            return true;
        if (str_starts(want, STR("*.")) && name.n > want.n - 1 &&
            str_eq_nocase(str_sub(name, name.n - (want.n - 1), name.n), str_sub(want, 1, want.n)))
            return true;
    }
    return false;
}

static void add_allow(struct problem *p, const char *method)
{
    size_t n = strlen(p->allow);

    if (strstr(p->allow, method) == NULL)
        snprintf(p->allow + n, sizeof(p->allow) - n, "%s%s", n != 0 ? ", " : "", method);
}

/* Among the routes of one path: method and host; a route for certain hosts wins. */
static const struct route *choose(const struct node *leaf, const struct request *r, bool head,
                                  struct problem *p, bool *any)
{
    struct str host = request_header(r, STR("Host"));
    const struct route *best = NULL;

    *any = false;
    for (size_t i = 0; i < leaf->n_routes; i++) {
        const struct route *x = leaf->routes[i];

        if (!host_fits(x, host))
            continue;
        *any = true;
        add_allow(p, http_method_names[x->method]);
        if (x->method == HTTP_GET)
            add_allow(p, "HEAD");
        if (!str_is(r->method, http_method_names[x->method]) && !(head && x->method == HTTP_GET))
            continue;
        if (best == NULL || (best->hosts.n == 0 && x->hosts.n != 0))
            best = x;
    }
    return best;
}

static enum route_result not_found(const struct route_table *t, const struct path *p,
                                   struct problem *problem)
{
    struct path other = *p;
    struct route_match m = {0};

    /* a trailing slash too much or too little is the usual reason */
    if (p->n > 1 && p->segments[p->n - 1].n == 0)
        other.n--;
    else if (p->n < ROUTE_SEGMENTS_MAX)
        other.segments[other.n++] = STR("");
    if (descend(&t->root, &other, 0, &m) != NULL)
        problem_set(problem, OUTCOME_ROUTE_NOT_FOUND,
                    "no route; with%s a slash at the end there is one",
                    other.n < p->n ? "out" : "");
    else
        problem_set(problem, OUTCOME_ROUTE_NOT_FOUND, "no route for this path");
    return ROUTE_NONE;
}

enum route_result route_match(const struct route_table *t, const struct request *r, struct arena *a,
                              struct route_match *m, struct problem *p)
{
    struct path path;
    const struct node *leaf = NULL;
    bool head = str_is(r->method, "HEAD");
    bool any = false;

    m->n_vars = 0;
    m->route = NULL;
    m->head = head;
    if (!split(r->path, a, &path)) {
        problem_set(p, OUTCOME_BAD_REQUEST, "the path is not valid percent-encoded UTF-8");
        return ROUTE_BAD;
    }
    leaf = descend(&t->root, &path, 0, m);
    if (leaf == NULL)
        return not_found(t, &path, p);
    m->route = choose(leaf, r, head, p, &any);
    if (m->route != NULL) {
        p->allow[0] = '\0';
        return ROUTE_FOUND;
    }
    if (!any)
        return not_found(t, &path, p);
    add_allow(p, "OPTIONS");
    if (str_is(r->method, "OPTIONS"))
        return ROUTE_OPTIONS;
    problem_set(p, OUTCOME_METHOD_NOT_ALLOWED, "this path takes %s", p->allow);
    return ROUTE_METHOD;
}

struct str route_var(const struct route_match *m, struct str name)
{
    for (size_t i = 0; i < m->n_vars; i++) {
        if (str_eq(m->vars[i].name, name))
            return m->vars[i].value;
    }
    return STR_NONE;
}
