#include <stdlib.h>

#include "gateway/route.h"

#include "tests/unit/gateway_kit.h"

/* method, path, name, hosts ("" = all; one) */
static const struct {
    uint32_t method;
    const char *path;
    const char *name;
    const char *host;
} routes[] = {
    {HTTP_GET, "/", "root", ""},
    {HTTP_GET, "/users", "list", ""},
    {HTTP_POST, "/users", "create", ""},
    {HTTP_GET, "/users/{id}", "get", ""},
    {HTTP_DELETE, "/users/{uid}", "delete", ""}, /* another name for the same place */
    {HTTP_GET, "/users/me", "me", ""},
    {HTTP_POST, "/users/{id}:lock", "lock", ""},
    {HTTP_POST, "/users/{id}:a:lock", "alock", ""},
    {HTTP_POST, "/users:batch", "batch", ""},
    {HTTP_GET, "/users/{id}/orders/{order}", "order", ""},
    {HTTP_GET, "/users/me/orders", "my-orders", ""},
    {HTTP_GET, "/files/{path=**}", "file", ""},
    {HTTP_GET, "/files/{name}", "one-file", ""},
    {HTTP_GET, "/files/top/{name}/x", "top", ""},
    {HTTP_GET, "/slash/", "slash", ""},
    {HTTP_PUT, "/a/{x}/c", "axc", ""},
    {HTTP_PUT, "/a/b/d", "abd", ""},
    {HTTP_GET, "/h", "h-any", ""},
    {HTTP_GET, "/h", "h-wild", "*.example.com"},
    {HTTP_GET, "/h", "h-closer", "*.eu.example.com"},
    {HTTP_GET, "/h", "h-exact", "api.example.com"},
    {HTTP_GET, "/v6", "v6", "[::1]"},
    {HTTP_GET, "/shop/cart", "cart-elsewhere", "shop.example.com"},
    {HTTP_GET, "/shop/{page}", "page", ""},
    {HTTP_HEAD, "/probe", "probe-head", ""},
    {HTTP_GET, "/probe", "probe-get", ""},
};

enum { N_ROUTES = ARRAY_LEN(routes) };

struct world {
    struct settings s;
    struct route routes[N_ROUTES];
    struct str hosts[N_ROUTES];
    struct route_table *t;
};

static void world_init(struct world *w, bool backwards)
{
    *w = (struct world){.s = {.n_routes = N_ROUTES}};
    w->s.routes = w->routes;
    for (size_t i = 0; i < N_ROUTES; i++) {
        size_t from = backwards ? N_ROUTES - 1 - i : i;

        w->hosts[i] = str_from(routes[from].host);
        w->routes[i] = (struct route){.name = str_from(routes[from].name),
                                      .method = routes[from].method,
                                      .path = str_from(routes[from].path),
                                      .hosts = {&w->hosts[i], w->hosts[i].n != 0 ? 1 : 0},
                                      .index = i};
    }
    w->t = route_table_build(&w->s);
}

/* "get id=42", "405 GET, HEAD, OPTIONS", "404 DETAIL", "400" */
static void answer(const struct world *w, struct ask *q, struct buf *out)
{
    struct route_match m;

    switch (route_match(w->t, &q->r, &q->a, &m, &q->p)) {
    case ROUTE_FOUND:
        buf_printf(out, STR_FMT "%s", STR_ARG(m.route->name), m.head ? " (head)" : "");
        for (size_t i = 0; i < m.n_vars; i++) {
            ck_assert(str_eq(route_var(&m, m.vars[i].name), m.vars[i].value));
            buf_printf(out, " " STR_FMT "=" STR_FMT, STR_ARG(m.vars[i].name),
                       STR_ARG(m.vars[i].value));
        }
        ck_assert_ptr_null(route_var(&m, STR("nobody")).p);
        return;
    case ROUTE_NONE:
        route_not_found(w->t, &q->r, &q->a, &q->p);
        ck_assert_int_eq(q->p.outcome, OUTCOME_ROUTE_NOT_FOUND);
        buf_printf(out, "404 %s", q->p.detail);
        return;
    case ROUTE_METHOD:
        ck_assert_int_eq(q->p.outcome, OUTCOME_METHOD_NOT_ALLOWED);
        buf_printf(out, "405 %s", q->p.allow);
        return;
    case ROUTE_OPTIONS:
        buf_printf(out, "204 %s", q->p.allow);
        return;
    case ROUTE_BAD:
        ck_assert_int_eq(q->p.outcome, OUTCOME_BAD_REQUEST);
        buf_printf(out, "400");
        return;
    }
}

#define NO_ROUTE  "404 no route for this path"
#define INSTEAD   NO_ROUTE ", but there is one for "
#define SIXTYFOUR "/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x"

static const struct {
    const char *method;
    const char *target;
    const char *lines;
    const char *want;
} cases[] = {
    {"GET", "/", "", "root"},
    {"GET", "/users", "", "list"},
    {"GET", "/users?x=/y", "", "list"},
    {"POST", "/users", "", "create"},
    {"GET", "/users/42", "", "get id=42"},
    {"DELETE", "/users/42", "", "delete uid=42"},
    {"GET", "/users/me", "", "me"},
    {"GET", "/users/Me", "", "get id=Me"},
    {"GET", "/users/%6de", "", "me"},
    {"GET", "/users/a%2Fb", "", "get id=a/b"},
    {"GET", "/users/%E4%B8%AD+x", "", "get id=中+x"},
    {"GET", "/users/a%3Fb%23", "", "get id=a?b#"},
    {"GET", "/users/..", "", "get id=.."},
    {"POST", "/users/42:lock", "", "lock id=42"},
    {"POST", "/users/42:a:lock", "", "alock id=42"},
    {"POST", "/users/42:b:lock", "", "lock id=42:b"},
    {"GET", "/users/42:lock", "", "405 POST, OPTIONS"},
    {"GET", "/users/42:unlock", "", "get id=42:unlock"},
    {"GET", "/users/:lock", "", "get id=:lock"}, /* a variable is never empty */
    {"POST", "/users:batch", "", "batch"},
    {"GET", "/users/7/orders/8", "", "order id=7 order=8"},
    {"GET", "/users/me/orders", "", "my-orders"},
    {"GET", "/users/me/orders/8", "", "order id=me order=8"}, /* back from the literal */
    {"PUT", "/a/b/c", "", "axc x=b"},
    {"PUT", "/a/b/d", "", "abd"},
    {"GET", "/files/a", "", "one-file name=a"},
    {"GET", "/files/a/b%20c/%2Fd", "", "file path=a/b c//d"},
    {"GET", "/files/", "", "file path="},
    {"GET", "/files/top/y/x", "", "top name=y"},
    {"GET", "/files/top/y/z", "", "file path=top/y/z"},
    {"GET", "/files" SIXTYFOUR SIXTYFOUR, "",
     "file path=x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x" SIXTYFOUR},
    {"GET", "/files" SIXTYFOUR SIXTYFOUR "/%ff", "", "400"},
    {"GET", SIXTYFOUR SIXTYFOUR "/x", "", NO_ROUTE},
    {"GET", "/files", "", INSTEAD "/files/"},
    {"GET", "/users/", "", INSTEAD "/users"},
    {"GET", "/users/42/", "", INSTEAD "/users/42"},
    {"GET", "/slash", "", INSTEAD "/slash/"},
    {"GET", "/slash/", "", "slash"},
    {"GET", "//users", "", NO_ROUTE},
    {"GET", "/users//orders/8", "", NO_ROUTE},
    {"GET", "/USERS", "", NO_ROUTE},
    {"GET", "/nothing/here", "", NO_ROUTE},
    {"PATCH", "/users", "", "405 GET, HEAD, POST, OPTIONS"},
    {"PATCH", "/users/42", "", "405 GET, HEAD, DELETE, OPTIONS"},
    {"BREW", "/users/42", "", "405 GET, HEAD, DELETE, OPTIONS"},
    {"get", "/users/42", "", "405 GET, HEAD, DELETE, OPTIONS"},
    {"POST", "/users/me", "", "405 GET, HEAD, OPTIONS"},
    {"OPTIONS", "/users", "", "204 GET, HEAD, POST, OPTIONS"},
    {"OPTIONS", "/nothing", "", NO_ROUTE},
    {"HEAD", "/users/42", "", "get (head) id=42"},
    {"HEAD", "/probe", "", "probe-head (head)"},
    {"GET", "/probe", "", "probe-get"},
    {"HEAD", "/users/42:lock", "", "405 POST, OPTIONS"},
    {"GET", "/users/%zz", "", "400"},
    {"GET", "/users/%4", "", "400"},
    {"GET", "/users/a%00b", "", "400"},
    {"GET", "/users/a%0Ab", "", "400"},
    {"GET", "/users/a%7f", "", "400"},
    {"GET", "/users/%ff", "", "400"},
    {"GET", "/users/%c0%af", "", "400"},
    {"GET", "/h", "", "h-any"},
    {"GET", "/h", "Host: api.example.com", "h-exact"},
    {"GET", "/h", "Host: API.example.COM:8080", "h-exact"},
    {"GET", "/h", "Host: b.example.com", "h-wild"},
    {"GET", "/h", "Host: b.eu.example.com", "h-closer"},
    {"GET", "/h", "Host: example.com", "h-any"},
    {"GET", "/h", "Host: evilexample.com", "h-any"},
    {"GET", "/v6", "Host: [::1]:8080", "v6"},
    {"GET", "/v6", "Host: [::1]", "v6"},
    {"GET", "/v6", "Host: [::2]", NO_ROUTE},
    {"GET", "/shop/cart", "Host: shop.example.com", "cart-elsewhere"},
    {"GET", "/shop/cart", "", "page page=cart"}, /* a leaf of other hosts is none */
};

static void check(const struct world *w, size_t i)
{
    struct ask q;
    struct buf got;

    kit_ask(&q, cases[i].method, cases[i].target, cases[i].lines, "");
    buf_init(&got, 4096);
    answer(w, &q, &got);
    buf_add_u8(&got, '\0');
    ck_assert_str_eq((const char *)got.data, cases[i].want);
    buf_free(&got);
    kit_done(&q);
}

START_TEST(match)
{
    struct world w;

    for (int backwards = 0; backwards < 2; backwards++) { /* the order in the file never matters */
        world_init(&w, backwards != 0);
        check(&w, (size_t)_i);
        route_table_free(w.t);
    }
}
END_TEST

START_TEST(no_path_is_no_route)
{
    struct world w;
    struct ask q;
    struct route_match m;

    world_init(&w, false);
    kit_ask(&q, "GET", "", "", "");
    ck_assert_int_eq(route_match(w.t, &q.r, &q.a, &m, &q.p), ROUTE_NONE);
    kit_done(&q);
    route_table_free(w.t);
}
END_TEST

/* Without escapes a match takes nothing from the arena. */
START_TEST(no_allocation)
{
    struct world w;
    struct ask q;
    struct route_match m;

    world_init(&w, false);
    kit_ask(&q, "GET", "/users/7/orders/8?a=b", "", "");
    ck_assert_int_eq(route_match(w.t, &q.r, &q.a, &m, &q.p), ROUTE_FOUND);
    ck_assert_uint_eq(q.a.used, 0);
    kit_done(&q);
    route_table_free(w.t);
}
END_TEST

START_TEST(thousand_routes)
{
    enum { N = 1000 };
    struct settings s = {.n_routes = N};
    struct route *v = calloc(N, sizeof(*v));
    struct route_table *t = NULL;
    struct arena a;

    ck_assert_ptr_nonnull(v);
    arena_init(&a);
    for (size_t i = 0; i < N; i++)
        v[i] = (struct route){.path = arena_printf(&a, "/svc%zu/{id}/m%zu", i * 7919 % N, i),
                              .index = i};
    s.routes = v;
    t = route_table_build(&s);
    for (size_t i = 0; i < N; i++) {
        struct route_match m;
        struct ask q;

        kit_ask(&q, "GET", "", "", "");
        q.r.path = arena_printf(&a, "/svc%zu/x/m%zu", i * 7919 % N, i);
        ck_assert_int_eq(route_match(t, &q.r, &q.a, &m, &q.p), ROUTE_FOUND);
        ck_assert_uint_eq(m.route->index, i);
        q.r.path = arena_printf(&a, "/svc%zu/x/m%zu", i * 7919 % N, i + 1);
        ck_assert_int_eq(route_match(t, &q.r, &q.a, &m, &q.p), ROUTE_NONE);
        kit_done(&q);
    }
    route_table_free(t);
    arena_free(&a);
    free(v);
}
END_TEST

START_TEST(templates)
{
    static const char *const good[] = {"/",          "/a/b",   "/{id}", "/{a}/{b}",
                                       "/{id}:lock", "/a/",    "/a//b", "/{path=**}",
                                       "/a:b",       "/{a-1}", "/日本"};
    static const char *const bad[] = {"/{id",      "/id}",   "/{}",       "/a{id}", "/{id}x",
                                      "/{=**}",    "/{a=*}", "/{p=**}/x", "/{1a}",  "/{a}/{a}",
                                      "/{p=**}:v", "/a%20b", "/a?b",      "/a b",   "/{a}:{b}",
                                      "/a#b",      "/{a b}"};
    struct err e = {0};

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        ck_assert_msg(route_template_check(str_from(good[i]), &e), "%s: %s", good[i], e.text);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!route_template_check(str_from(bad[i]), &e), "%s", bad[i]);
    ck_assert(route_template_has(STR("/a/{x}:v/{y=**}"), STR("x")));
    ck_assert(route_template_has(STR("/a/{x}/{y=**}"), STR("y")));
    ck_assert(!route_template_has(STR("/a/{x}"), STR("a")));
    ck_assert(route_template_same(STR("/a/{x}"), STR("/a/{y}")));
    ck_assert(!route_template_same(STR("/a/{x}"), STR("/a/{x}:v")));
    ck_assert(!route_template_same(STR("/a/{x}"), STR("/a/{x=**}")));
    ck_assert(!route_template_same(STR("/a"), STR("/a/")));
}
END_TEST

START_TEST(template_limits)
{
    struct arena a;
    struct err e = {0};
    struct str path = STR("");

    arena_init(&a);
    for (int i = 0; i < ROUTE_VARS_MAX; i++)
        path = arena_printf(&a, STR_FMT "/{v%d}", STR_ARG(path), i);
    ck_assert(route_template_check(path, &e));
    ck_assert(!route_template_check(arena_printf(&a, STR_FMT "/{w}", STR_ARG(path)), &e));
    path = STR("");
    for (int i = 0; i < ROUTE_SEGMENTS_MAX; i++)
        path = arena_printf(&a, STR_FMT "/s", STR_ARG(path));
    ck_assert(route_template_check(path, &e));
    ck_assert(!route_template_check(arena_printf(&a, STR_FMT "/s", STR_ARG(path)), &e));
    arena_free(&a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gateway_route");
    TCase *t = tcase_create("routes");

    tcase_add_loop_test(t, match, 0, (int)ARRAY_LEN(cases));
    tcase_add_test(t, no_path_is_no_route);
    tcase_add_test(t, no_allocation);
    tcase_add_test(t, thousand_routes);
    tcase_add_test(t, templates);
    tcase_add_test(t, template_limits);
    suite_add_tcase(s, t);
    return kit_run(s);
}
