/*
 * References and their bounds with a kind that only remembers what it was asked, and a clock that stands.
 * Defining the functions of base/clock and registry/kind here keeps the real ones out of the link.
 */
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/core.h"

#include "tests/unit/registry_data.h"

/* each test file uses what it needs */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"

/* ---------------------------------------------------------------- clock */

static uint64_t now_ms;

uint64_t clock_ms(void)
{
    return now_ms;
}

uint64_t clock_us(void)
{
    return now_ms * 1000;
}

uint64_t wall_ms(void)
{
    return UINT64_C(1768000000000) + now_ms;
}

void time_text(uint64_t wall_millis, char out[TIME_TEXT_LEN + 1])
{
    snprintf(out, TIME_TEXT_LEN + 1, "%024llu", (unsigned long long)wall_millis);
}

/* ---------------------------------------------------------------- kind */

static unsigned n_watch;
static unsigned n_unwatch;
static unsigned n_publish;
static unsigned n_unpublish;
static unsigned n_refresh;
static unsigned n_describe;

static void *fake_open(struct source *s, struct err *e)
{
    source_set_connected(s, true);
    return s;
}

static void fake_close(void *kind)
{
}

static void fake_watch(void *kind, struct reference *ref)
{
    ref->kind_ref = kind;
    n_watch++;
}

static void fake_unwatch(void *kind, struct reference *ref)
{
    n_unwatch += ref->kind_ref != NULL ? 1U : 0U;
}

static void fake_refresh(void *kind, struct reference *ref)
{
    n_refresh++;
}

static void fake_publish(void *kind, struct reference *ref)
{
    n_publish++;
}

static void fake_unpublish(void *kind, struct reference *ref)
{
    n_unpublish++;
}

static bool fake_describe(void *kind, struct reference *ref, const struct provider *p)
{
    n_describe++;
    return true;
}

static bool fake_tick(void *kind, uint64_t now)
{
    return false;
}

static void fake_report(const void *kind, json_t *into)
{
    json_object_set_new(into, "state", json_string("fake"));
}

static void fake_node_name(const struct reference *ref, struct buf *out)
{
}

static const struct registry_kind fake = {
    .scheme = "fake",
    .open = fake_open,
    .close = fake_close,
    .watch = fake_watch,
    .unwatch = fake_unwatch,
    .refresh = fake_refresh,
    .publish = fake_publish,
    .unpublish = fake_unpublish,
    .node_name = fake_node_name,
    .describe = fake_describe,
    .tick = fake_tick,
    .report = fake_report,
};

const struct registry_kind *registry_kind_find(struct str address)
{
    return str_starts(address, STR("fake://")) ? &fake : NULL;
}

/* ---------------------------------------------------------------- what a test does */

enum { N_WORKERS = 2 };

static struct registry *r;
static struct mailbox boxes[N_WORKERS];
static struct mailbox control;
static struct registry_conf conf;
static struct registry_opts opts;
static struct err e;

static void no_wake(struct mailbox *box)
{
}

static void start(void)
{
    now_ms = 1000000;
    n_watch = n_unwatch = n_publish = n_unpublish = n_refresh = n_describe = 0;
    conf = (struct registry_conf){.name = "main",
                                  .address = "fake://x",
                                  .root = "/dubbo",
                                  .connect_timeout_ms = 1000,
                                  .register_consumer = true};
    opts = (struct registry_opts){.registries = &conf,
                                  .n_registries = 1,
                                  .max_references = 100,
                                  .reference_idle_ms = 3600000};
}

static void run(void)
{
    r = registry_new(&opts, &e);
    ck_assert_msg(r != NULL, "%s", e.text);
    for (unsigned i = 0; i < N_WORKERS; i++) {
        mailbox_init(&boxes[i], no_wake);
        registry_add_worker(r, &boxes[i]);
    }
    registry_take_mail(r);
}

static void end(void)
{
    registry_free(r);
    for (unsigned i = 0; i < N_WORKERS; i++) {
        for (struct mail *m = mailbox_take(&boxes[i]), *next = NULL; m != NULL; m = next) {
            next = m->next;
            registry_mail_free(container_of(m, struct registry_mail, mail));
        }
    }
}

/* All mail of a worker as text: "a.B: 1 2; a.C: unknown; a.D: gone;" */
static struct buf told_text;
static const char *told_box(struct mailbox *box)
{
    struct mail *next = NULL;

    buf_free(&told_text);
    buf_init(&told_text, 1 << 20);
    for (struct mail *m = mailbox_take(box); m != NULL; m = next) {
        static const char *const refusals[] = {"", "unknown", "limit", "starting"};
        struct registry_mail *x = container_of(m, struct registry_mail, mail);

        next = m->next;
        buf_printf(&told_text, "%s%s:", told_text.len != 0 ? " " : "",
                   x->key_text != NULL ? x->key_text : "");
        if (x->kind == REGISTRY_MAIL_REFUSED)
            buf_printf(&told_text, " %s", refusals[x->refusal]);
        if (x->kind == REGISTRY_MAIL_GONE)
            buf_printf(&told_text, " gone");
        if (x->kind == REGISTRY_MAIL_EVICT)
            buf_printf(&told_text, " idle?");
        for (size_t i = 0; x->directory != NULL && i < x->directory->n; i++)
            buf_printf(&told_text, " %s%u", x->directory->providers[i].unlisted ? "-" : "",
                       (unsigned)x->directory->providers[i].port);
        buf_add_u8(&told_text, ';');
        registry_mail_free(x);
    }
    buf_add_u8(&told_text, '\0');
    return (const char *)told_text.data;
}

static const char *told(unsigned worker)
{
    return told_box(&boxes[worker]);
}

#define ck_told(worker, expected) ck_assert_str_eq(told(worker), (expected))

static struct refkey key(const char *text)
{
    struct refkey k;

    ck_assert(refkey_parse(str_from(text), &k, &e));
    return k;
}

static void want(const char *text, unsigned worker)
{
    struct refkey k = key(text);

    registry_want(r, &k, NULL, &boxes[worker]);
    registry_take_mail(r);
}

static void configure(const char *first, const char *second)
{
    struct wanted_service w[2];
    size_t n = 0;

    memset(w, 0, sizeof(w));
    if (first != NULL)
        w[n++].key = key(first);
    if (second != NULL)
        w[n++].key = key(second);
    registry_configure(r, w, n);
    registry_take_mail(r);
}

static struct reference *find(const char *text)
{
    return cache_find(r, str_from(text));
}

/* The registry answers; `ports` as in "1 2 3". */
static void list_is(const char *text, const char *ports, int64_t czxid, bool exists)
{
    struct reference *ref = find(text);
    struct str urls[32];
    struct arena a;
    struct str rest = str_from(ports);
    struct list_report l = {.urls = urls, .exists = exists, .czxid = czxid};

    ck_assert_msg(ref != NULL, "%s is no reference", text);
    arena_init(&a);
    while (rest.n != 0) {
        struct str port = str_cut(rest, ' ', &rest);

        urls[l.n++] = arena_printf(&a, "dubbo://127.0.0.1:" STR_FMT "/" STR_FMT, STR_ARG(port),
                                   STR_ARG(ref->key.interface));
    }
    reference_on_list(ref, &l);
    arena_free(&a);
}

/* Worker `i` has no connection to the providers at these indexes of its list. */
static void lost(const char *text, unsigned worker, const char *indexes)
{
    struct str rest = str_from(indexes);
    size_t v[8];
    size_t n = 0;

    while (rest.n != 0)
        v[n++] = (size_t)(str_cut(rest, ' ', &rest).p[0] - '0');
    registry_unlisted_lost(r, &boxes[worker], str_from(text), find(text)->directory, v, n);
    registry_take_mail(r);
}

static void list(const char *text, const char *ports)
{
    list_is(text, ports, 7, true);
}

static void pass(uint64_t ms)
{
    now_ms += ms;
    registry_take_mail(r);
    registry_tick(r);
}

static void answer_idle(const char *text, unsigned worker, bool idle)
{
    registry_evict_answer(r, &boxes[worker], str_from(text), idle);
    registry_take_mail(r);
}

static void know(const char *text)
{
    want(text, 0);
    list(text, "1");
    (void)told(0);
    (void)told(1);
    now_ms += 10;
}

static struct registry_numbers numbers(void)
{
    struct registry_numbers n;

    registry_take_mail(r);
    registry_numbers(r, &n);
    return n;
}

/* ---------------------------------------------------------------- states */

/* Does entering `to` from `from` end in an abort? */
static bool is_refused(enum reference_state from, enum reference_state to)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct refkey k = key("a.B");
        struct reference *ref = reference_new(r, &k, &r->sources[0]);

        signal(SIGABRT, SIG_DFL);
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(2);
        ref->state = from;
        reference_enter(ref, to);
        _exit(ref->state == to ? 0 : 2);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void fill(size_t n)
{
    char name[32];

    start();
    opts.max_references = n;
    run();
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "a.N%zu", i);
        know(name);
    }
}
