/*
 * References and their bounds with a kind that only remembers what it was asked, and a clock that stands.
 * Defining the functions of base/clock and registry/kind here keeps the real ones out of the link.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/core.h"

#include "tests/unit/registry_data.h"

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
    n_watch = n_unwatch = n_publish = n_unpublish = n_refresh = 0;
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

START_TEST(every_pair_of_states)
{
    /*                          to: WANTED READING READY EMPTY SNAPSHOT FAILED LEAVING */
    static const char *const ok[REFERENCE_STATES] = {
        [REFERENCE_WANTED] = "xx..x.x",   [REFERENCE_READING] = ".xxx.xx",
        [REFERENCE_READY] = "..xx..x",    [REFERENCE_EMPTY] = "..xx..x",
        [REFERENCE_SNAPSHOT] = "..xxx.x", [REFERENCE_FAILED] = "..xx.xx",
        [REFERENCE_LEAVING] = "......x",
    };

    start();
    run();
    for (enum reference_state from = REFERENCE_WANTED; from < REFERENCE_STATES; from++) {
        for (enum reference_state to = REFERENCE_WANTED; to < REFERENCE_STATES; to++)
            ck_assert_msg(is_refused(from, to) == (ok[from][to] == '.'), "%s -> %s",
                          reference_state_name(from), reference_state_name(to));
    }
    end();
}
END_TEST

START_TEST(gauges_follow_the_states)
{
    start();
    run();
    configure("a.B", "a.C");
    ck_assert_uint_eq(numbers().references[REFERENCE_READING], 2);
    ck_assert_uint_eq(numbers().waiting, 2);
    list("a.B", "1");
    list("a.C", "");
    ck_assert_uint_eq(numbers().references[REFERENCE_READING], 0);
    ck_assert_uint_eq(numbers().references[REFERENCE_READY], 1);
    ck_assert_uint_eq(numbers().references[REFERENCE_EMPTY], 1);
    ck_assert_uint_eq(numbers().waiting, 0);
    list("a.C", "2");
    ck_assert_uint_eq(numbers().references[REFERENCE_READY], 2);
    reference_free(find("a.C"), true);
    ck_assert_uint_eq(numbers().references[REFERENCE_READY], 1);
    ck_assert_uint_eq(numbers().references[REFERENCE_LEAVING], 0);
    end();
}
END_TEST

/* ---------------------------------------------------------------- one subscription */

START_TEST(single_flight)
{
    start();
    run();
    for (int i = 0; i < 1000; i++)
        want("a.B", (unsigned)i % 2);
    ck_assert_uint_eq(n_watch, 1);
    ck_told(0, "");
    list("a.B", "1 2");
    ck_assert_uint_eq(n_watch, 2); /* once more, now with a watch */
    ck_told(0, "a.B: 1 2;");
    ck_told(1, "a.B: 1 2;");
    ck_assert_uint_eq(find("a.B")->subscribes, 1);
    list("a.B", "1 2");
    ck_told(0, "");
    want("a.B", 1);
    ck_told(0, "");
    ck_told(1, "a.B: 1 2;");
    ck_assert_uint_eq(n_watch, 2);
    ck_assert_uint_eq(numbers().subscriptions_total, 1);
    end();
}
END_TEST

START_TEST(a_worker_that_comes_late_gets_all_lists)
{
    struct mailbox late;

    start();
    run();
    know("a.B");
    know("a.C");
    mailbox_init(&late, no_wake);
    registry_add_worker(r, &late);
    registry_take_mail(r);
    ck_assert_str_eq(told_box(&late), "a.B: 1; a.C: 1;");
    end();
}
END_TEST

START_TEST(equal_lists_tell_nobody)
{
    start();
    run();
    configure("a.B", NULL);
    list("a.B", "1 2 3");
    ck_told(1, "a.B: 1 2 3;");
    list("a.B", "3 1 2");
    list("a.B", "2 2 1 3");
    ck_told(1, "");
    list("a.B", "1 3");
    ck_told(1, "a.B: 1 3;");
    end();
}
END_TEST

START_TEST(garbage_in_a_list_is_skipped)
{
    const struct str urls[] = {STR_INIT("no url"), STR_INIT("dubbo://127.0.0.1:1/a.B"),
                               STR_INIT("consumer://127.0.0.1/a.B"),
                               STR_INIT("dubbo://169.254.169.254:80/a.B"),
                               STR_INIT("dubbo://127.0.0.1:2/a.B?version=2.0")};
    const struct list_report l = {.urls = urls, .n = ARRAY_LEN(urls), .exists = true, .czxid = 7};

    start();
    run();
    configure("a.B", NULL);
    reference_on_list(find("a.B"), &l);
    ck_assert_uint_eq(find("a.B")->directory->n_usable, 1);
    ck_assert_uint_eq(find("a.B")->directory->n_ignored[UNUSABLE_ADDRESS], 1);
    end();
}
END_TEST

/* ---------------------------------------------------------------- consumer nodes */

START_TEST(consumer_node_only_after_a_provider)
{
    start();
    run();
    configure("a.B", NULL);
    for (int i = 0; i < 1000; i++)
        want("a.B", 0);
    list("a.B", "");
    for (int i = 0; i < 1000; i++)
        want("a.B", 0);
    ck_assert_uint_eq(n_publish, 0);
    list("a.B", "1");
    ck_assert_uint_eq(n_publish, 1);
    for (int i = 0; i < 1000; i++)
        want("a.B", 0);
    list("a.B", "");
    ck_assert_uint_eq(n_publish, 1);
    want("x.Unknown", 0);
    list("x.Unknown", "");
    ck_assert_uint_eq(n_publish, 1);
    reference_free(find("a.B"), true);
    ck_assert_uint_ge(n_unpublish, 1);
    end();
}
END_TEST

START_TEST(consumer_node_can_be_switched_off)
{
    start();
    conf.register_consumer = false;
    run();
    configure("a.B", NULL);
    list("a.B", "1");
    ck_assert_uint_eq(n_publish, 0);
    end();
}
END_TEST

/* ---------------------------------------------------------------- unknown names */

START_TEST(unknown_names_are_read_once)
{
    start();
    run();
    want("x.Y", 0);
    want("x.Y", 1);
    ck_assert_uint_eq(n_watch, 1);
    list("x.Y", "");
    ck_told(0, "x.Y: unknown;");
    ck_told(1, "x.Y: unknown;");
    ck_assert_ptr_null(find("x.Y"));
    ck_assert_uint_eq(n_unwatch, 1);
    for (int i = 0; i < 100; i++)
        want("x.Y", 0);
    ck_assert_uint_eq(n_watch, 1);
    pass(NEGATIVE_MS - 1);
    want("x.Y", 0);
    ck_assert_uint_eq(n_watch, 1);
    (void)told(0);
    pass(1);
    want("x.Y", 0);
    ck_assert_uint_eq(n_watch, 2);
    list("x.Y", "5");
    ck_told(0, "x.Y: 5;");
    ck_assert_uint_eq(numbers().subscriptions_total, 1);
    end();
}
END_TEST

START_TEST(look_ups_are_bounded)
{
    char name[32];

    start();
    opts.max_references = 10;
    run();
    know("a.B");
    for (int i = 0; i < LOOKUPS_MAX; i++) {
        snprintf(name, sizeof(name), "x.N%d", i);
        want(name, 0);
    }
    ck_told(0, "");
    want("x.More", 0);
    ck_told(0, "x.More: limit;");
    want("a.B", 0); /* who is known is not touched by that */
    ck_told(0, "a.B: 1;");
    for (int i = 0; i < LOOKUPS_MAX; i++) {
        snprintf(name, sizeof(name), "x.N%d", i);
        list(name, "");
    }
    ck_assert_uint_eq(r->n_negatives, 10); /* as many as references may be */
    ck_assert_uint_eq(r->n_lookups, 0);
    ck_assert_uint_eq(r->n_references, 1);
    ck_assert_uint_eq(numbers().evictions_total, 0);
    pass(5000);
    ck_assert_uint_eq(r->n_negatives, 0);
    end();
}
END_TEST

START_TEST(look_ups_per_second_are_bounded)
{
    char name[32];
    int good = 0;

    start();
    run();
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "x.N%d", i);
        want(name, 0);
        if (find(name) != NULL) {
            list(name, "");
            good++;
        }
    }
    ck_assert_int_eq(good, LOOKUPS_PER_SECOND);
    now_ms += 1000;
    want("x.Next", 0);
    ck_assert_ptr_nonnull(find("x.Next"));
    end();
}
END_TEST

START_TEST(a_name_with_providers_stays_when_they_go)
{
    start();
    run();
    know("a.B");
    list("a.B", "");
    ck_told(0, "a.B: -1;"); /* the last one stays while it is connected */
    lost("a.B", 0, "0");
    lost("a.B", 1, "0");
    ck_told(0, "a.B:;");
    ck_assert_int_eq(find("a.B")->state, REFERENCE_EMPTY);
    want("a.B", 1);
    (void)told(1);
    list("a.B", "2");
    ck_told(1, "a.B: 2;");
    ck_assert_uint_eq(find("a.B")->subscribes, 1);
    end();
}
END_TEST

/* ---------------------------------------------------------------- starting */

START_TEST(starting_after_three_seconds)
{
    start();
    run();
    configure("a.B", NULL);
    want("a.B", 0);
    want("x.Y", 1);
    pass(STARTING_MS - 1);
    ck_told(0, "");
    pass(1);
    ck_told(0, "a.B: starting;");
    ck_told(1, "x.Y: starting;");
    ck_assert_ptr_null(find("x.Y")); /* nothing stays of it */
    ck_assert_ptr_nonnull(find("a.B"));
    want("a.B", 0); /* and again from then on */
    pass(STARTING_MS);
    ck_told(0, "a.B: starting;");
    end();
}
END_TEST

START_TEST(starting_at_once_when_known_to_be_away)
{
    start();
    run();
    configure("a.B", NULL);
    source_set_connected(&r->sources[0], false);
    now_ms += 500;
    want("a.B", 0);
    ck_told(0, "");
    pass(conf.connect_timeout_ms); /* who waits already is not kept either */
    ck_told(0, "a.B: starting;");
    want("a.B", 0);
    want("x.Y", 1);
    ck_told(0, "a.B: starting;");
    ck_told(1, "x.Y: starting;");
    ck_assert_uint_eq(r->n_lookups, 0);
    source_set_connected(&r->sources[0], true);
    list("a.B", "1");
    ck_told(0, "a.B: 1;");
    source_set_connected(&r->sources[0], false);
    pass(3600000);
    want("a.B", 0); /* a list that is known is used for as long as it takes */
    ck_told(0, "a.B: 1;");
    end();
}
END_TEST

START_TEST(an_error_is_no_list)
{
    start();
    run();
    configure("a.B", "a.C");
    reference_on_error(find("a.B"), "no permission");
    ck_assert_int_eq(find("a.B")->state, REFERENCE_FAILED);
    want("a.B", 0);
    ck_told(0, "a.B: starting;");
    list("a.B", "1");
    ck_assert_int_eq(find("a.B")->state, REFERENCE_READY);
    reference_on_error(find("a.B"), "no permission");
    ck_assert_int_eq(find("a.B")->state, REFERENCE_READY);
    ck_told(0, "a.B: 1;");
    end();
}
END_TEST

/* ---------------------------------------------------------------- eviction */

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

START_TEST(the_least_recently_used_goes)
{
    fill(4);
    registry_touch(r, &boxes[0], STR("a.N0\na.N1"));
    want("a.New", 0);
    list("a.New", "9");
    ck_told(0, "a.N2: idle?;");
    ck_told(1, "a.N2: idle?;");
    answer_idle("a.N2", 0, true);
    ck_assert_ptr_nonnull(find("a.N2"));
    answer_idle("a.N2", 1, true);
    ck_assert_ptr_null(find("a.N2"));
    list("a.New", "9"); /* the read with a watch */
    ck_told(0, "a.N2: gone; a.New: 9;");
    ck_told(1, "a.N2: gone; a.New: 9;");
    ck_assert_uint_eq(r->n_references, 4);
    ck_assert_uint_eq(numbers().evictions_total, 1);
    ck_assert_uint_eq(n_unwatch, 1);
    end();
}
END_TEST

START_TEST(busy_ones_stay)
{
    fill(3);
    want("a.New", 0);
    list("a.New", "9");
    for (int i = 0; i < 3; i++) {
        char name[32];

        snprintf(name, sizeof(name), "a.N%d", i);
        ck_assert_uint_eq(find(name)->evict_pending, 3);
        answer_idle(name, 0, true);
        answer_idle(name, 1, false);
    }
    ck_assert_ptr_null(find("a.New"));
    ck_assert_str_eq(told(0), "a.N0: idle?; a.N1: idle?; a.N2: idle?; a.New: limit;");
    ck_assert_uint_eq(r->n_references, 3);
    /* asked again only after a while */
    want("a.New", 0);
    list("a.New", "9");
    ck_told(0, "a.New: limit;");
    now_ms += EVICT_PATIENCE_MS;
    want("a.New", 0);
    list("a.New", "9");
    ck_told(0, "a.N0: idle?;");
    end();
}
END_TEST

START_TEST(used_meanwhile_is_busy)
{
    fill(1);
    want("a.New", 0);
    list("a.New", "9");
    want("a.N0", 1);
    answer_idle("a.N0", 0, true);
    answer_idle("a.N0", 1, true);
    ck_assert_ptr_nonnull(find("a.N0"));
    ck_assert_ptr_null(find("a.New"));
    end();
}
END_TEST

START_TEST(a_silent_worker_counts_as_busy)
{
    fill(1);
    want("a.New", 0);
    list("a.New", "9");
    answer_idle("a.N0", 0, true);
    pass(EVICT_PATIENCE_MS - 1);
    ck_assert_ptr_nonnull(find("a.New"));
    pass(1);
    ck_assert_ptr_nonnull(find("a.N0"));
    ck_assert_ptr_null(find("a.New"));
    ck_told(0, "a.N0: idle?; a.New: limit;");
    answer_idle("a.N0", 1, true); /* too late */
    ck_assert_ptr_nonnull(find("a.N0"));
    ck_assert_uint_eq(r->n_evicting, 0);
    end();
}
END_TEST

START_TEST(configured_ones_are_never_evicted)
{
    fill(2);
    configure("a.N0", "a.N1");
    (void)told(0);
    want("a.New", 0);
    list("a.New", "9");
    ck_told(0, "a.New: limit;");
    configure("a.N1", NULL); /* a.N0 is an ordinary one now */
    ck_told(0, "");
    ck_assert_uint_eq(n_watch, 5);
    want("a.New", 0);
    list("a.New", "9");
    ck_told(0, "a.N0: idle?;");
    end();
}
END_TEST

START_TEST(many_wait_for_room)
{
    fill(3);
    want("a.X", 0);
    want("a.Y", 1);
    list("a.X", "8");
    list("a.Y", "9");
    ck_told(0, "a.N0: idle?; a.N1: idle?;");
    answer_idle("a.N1", 0, true);
    answer_idle("a.N1", 1, true);
    ck_assert(find("a.X")->watched);
    ck_assert(!find("a.Y")->watched);
    answer_idle("a.N0", 0, false);
    answer_idle("a.N0", 1, true);
    ck_assert_uint_eq(find("a.N2")->evict_pending, 3);
    answer_idle("a.N2", 0, true);
    answer_idle("a.N2", 1, true);
    ck_assert(find("a.Y")->watched);
    ck_assert_uint_eq(r->n_references, 3);
    ck_assert_uint_eq(r->n_lookups, 0);
    end();
}
END_TEST

START_TEST(idle_ones_leave)
{
    start();
    opts.reference_idle_ms = 5000;
    run();
    configure("a.Pinned", NULL);
    list("a.Pinned", "1");
    know("a.B");
    pass(3000);
    registry_touch(r, &boxes[0], STR("a.B"));
    registry_take_mail(r);
    pass(3000);
    ck_assert_uint_eq(find("a.B")->evict_pending, 0);
    (void)told(0);
    pass(2000);
    ck_told(0, "a.B: idle?;");
    answer_idle("a.B", 0, true);
    answer_idle("a.B", 1, true);
    ck_assert_ptr_null(find("a.B"));
    ck_assert_ptr_nonnull(find("a.Pinned"));
    end();
}
END_TEST

/* ---------------------------------------------------------------- unlisted */

START_TEST(who_is_lost_to_all_workers_leaves)
{
    start();
    run();
    configure("a.B", NULL);
    list("a.B", "1 2 3 4");
    (void)told(0);
    list("a.B", "4");
    ck_told(0, "a.B: -1 -2 -3 4;");
    pass(3600000);
    ck_told(0, "");          /* no time limit */
    lost("a.B", 0, "0 1 3"); /* 4 is listed: that counts for nothing */
    lost("a.B", 1, "1 2 3");
    ck_told(0, "a.B: -1 -3 4;");
    lost("a.B", 0, "0");
    lost("a.B", 0, ""); /* connected again, over another reference */
    lost("a.B", 1, "0");
    ck_told(0, "");
    list("a.B", "1 4"); /* back: both have to say it again */
    ck_told(0, "a.B: 1 -3 4;");
    lost("a.B", 0, "0 1 2");
    lost("a.B", 1, "0 1 2");
    ck_told(0, "a.B: 1 4;");
    ck_assert_int_eq(find("a.B")->state, REFERENCE_READY);
    end();
}
END_TEST

START_TEST(the_last_unlisted_one_leaves)
{
    start();
    run();
    configure("a.B", NULL);
    list("a.B", "1 2");
    (void)told(0);
    list("a.B", "");
    ck_told(0, "a.B: -1 -2;");
    lost("a.B", 0, "0 1");
    lost("a.B", 1, "0 1");
    ck_told(0, "a.B:;");
    ck_assert_int_eq(find("a.B")->state, REFERENCE_EMPTY);
    end();
}
END_TEST

START_TEST(a_wiped_registry_takes_nobody_away)
{
    start();
    run();
    configure("a.B", NULL);
    list("a.B", "1 2 3");
    (void)told(0);
    list_is("a.B", "", 0, false);
    ck_told(0, "a.B: -1 -2 -3;");
    pass(3600000);
    list_is("a.B", "", 90, true);
    ck_told(0, "");
    list_is("a.B", "2", 90, true);
    ck_told(0, "a.B: -1 2 -3;");
    pass(3600000);
    list_is("a.B", "2 4", 90, true);
    ck_told(0, "a.B: -1 2 -3 4;");
    pass(3600000); /* that list is an ordinary one now, the former providers stay */
    list_is("a.B", "2 3 4", 90, true);
    list_is("a.B", "2 4", 90, true);
    ck_told(0, "a.B: -1 2 3 4; a.B: -1 2 4;");
    list_is("a.B", "1 2 4", 90, true);
    ck_told(0, "a.B: 1 2 4;");
    end();
}
END_TEST

START_TEST(a_rolled_back_registry_takes_nobody_away)
{
    struct list_report l = {.exists = true, .czxid = 7, .rolled_back = true};

    start();
    run();
    configure("a.B", NULL);
    list("a.B", "1 2 3");
    (void)told(0);
    reference_on_list(find("a.B"), &l);
    ck_told(0, "a.B: -1 -2 -3;");
    lost("a.B", 0, "0 1 2");
    lost("a.B", 1, "1 2"); /* the registry's list does not count, only whether they answer */
    ck_told(0, "a.B: -1;");
    end();
}
END_TEST

/* ---------------------------------------------------------------- names */

static const char *resolves_to;

static bool fake_lookup(const char *name, union address *out, struct err *why)
{
    if (resolves_to != NULL && address_from_text(str_from(resolves_to), 0, out))
        return true;
    err_set(why, "%s is not known", name);
    return false;
}

START_TEST(names_are_resolved_again)
{
    const struct str urls[] = {STR_INIT("dubbo://provider.example:1/a.B"),
                               STR_INIT("dubbo://127.0.0.1:2/a.B")};
    const struct list_report l = {.urls = urls, .n = ARRAY_LEN(urls), .exists = true, .czxid = 7};
    const struct provider *p = NULL;

    start();
    run();
    resolver_free(r->resolver);
    r->resolver = resolver_new(fake_lookup);
    resolves_to = NULL;
    configure("a.B", NULL);
    reference_on_list(find("a.B"), &l);
    (void)told(0);
    p = &find("a.B")->directory->providers[1];
    ck_assert_str_eq(unusable_name(p->unusable), unusable_name(UNUSABLE_ADDRESS));
    resolves_to = "10.0.0.1";
    pass(RESOLVE_AGAIN_MS);
    ck_told(0, "a.B: 2 1;");
    p = &find("a.B")->directory->providers[1];
    ck_assert_int_eq(p->unusable, USABLE);
    ck_assert_uint_eq(ntohl(p->addr.v4.sin_addr.s_addr), 0x0a000001);
    resolves_to = "10.0.0.2";
    pass(RESOLVE_AGAIN_MS);
    ck_told(0, "a.B: 2 1;");
    pass(RESOLVE_AGAIN_MS);
    ck_told(0, "");
    resolves_to = NULL; /* a name server that fails takes nobody away */
    pass(RESOLVE_AGAIN_MS);
    ck_told(0, "");
    resolves_to = "169.254.169.254";
    pass(RESOLVE_AGAIN_MS);
    ck_told(0, "a.B: 2 1;");
    p = &find("a.B")->directory->providers[1];
    ck_assert_int_eq(p->unusable, UNUSABLE_ADDRESS);
    end();
}
END_TEST

/* ---------------------------------------------------------------- saved lists */

START_TEST(saved_lists)
{
    char dir[] = "/tmp/registry_reference.XXXXXX";
    char file[64];

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/references.json", dir);
    start();
    opts.state_dir = dir;
    run();
    configure("a.B", NULL);
    list("a.B", "1 2");
    know("a.C");
    ck_assert_int_ne(access(file, F_OK), 0);
    pass(SAVE_AFTER_MS);
    ck_assert_int_eq(access(file, F_OK), 0);
    end();

    run();
    source_set_connected(&r->sources[0], false);
    now_ms += 60000;
    configure("a.B", NULL);
    ck_told(0, "a.B: 1 2;");
    ck_assert_int_eq(find("a.B")->state, REFERENCE_SNAPSHOT);
    ck_assert_int_eq(find("a.B")->directory->source, DIRECTORY_SNAPSHOT);
    ck_assert_uint_eq(numbers().waiting, 0);
    want("a.C", 0); /* had providers: no look-up */
    ck_told(0, "a.C: 1; a.C: 1;");
    ck_assert_uint_eq(find("a.C")->subscribes, 1);
    want("a.D", 0);
    ck_told(0, "a.D: starting;");
    list("a.B", "2 3"); /* the registry is back: same list, one has left */
    ck_told(0, "a.B: 2 3;");
    ck_assert_int_eq(find("a.B")->state, REFERENCE_READY);
    list_is("a.C", "", 8, true); /* another list */
    ck_told(0, "a.C: -1;");
    end();

    conf.snapshot_max_age_ms = 1000;
    now_ms += 7200000;
    run();
    configure("a.B", NULL);
    ck_told(0, "");
    ck_assert_int_eq(find("a.B")->state, REFERENCE_READING);
    end();
    unlink(file);
    rmdir(dir);
}
END_TEST

/* ---------------------------------------------------------------- fixed providers */

START_TEST(fixed_providers)
{
    struct str urls[] = {STR_INIT("127.0.0.1:1"), STR_INIT("dubbo://127.0.0.1:2?weight=7")};
    struct wanted_service w = {.key = {.interface = STR("a.B")}, .urls = urls, .n_urls = 2};

    start();
    opts.n_registries = 0;
    run();
    registry_configure(r, &w, 1);
    registry_take_mail(r);
    ck_told(0, "a.B: 1 2;");
    ck_assert_int_eq(find("a.B")->state, REFERENCE_READY);
    ck_assert_int_eq(find("a.B")->directory->source, DIRECTORY_STATIC);
    registry_configure(r, &w, 1);
    registry_take_mail(r);
    ck_told(0, "");
    w.n_urls = 1;
    registry_configure(r, &w, 1);
    registry_take_mail(r);
    ck_told(0, "a.B: 1;");
    want("x.Y", 0);
    ck_told(0, "x.Y: unknown;");
    registry_configure(r, NULL, 0);
    registry_take_mail(r);
    ck_told(0, "a.B: gone;");
    end();
}
END_TEST

/* ---------------------------------------------------------------- the rest */

START_TEST(control_hears_of_changes)
{
    unsigned n = 0;

    start();
    mailbox_init(&control, no_wake);
    opts.control = &control;
    run();
    configure("a.B", NULL);
    list("a.B", "1");
    registry_tick(r);
    source_set_connected(&r->sources[0], false);
    registry_tick(r);
    registry_tick(r);
    end();
    for (struct mail *m = mailbox_take(&control), *next = NULL; m != NULL; m = next) {
        next = m->next;
        n++;
        ck_assert_int_eq(container_of(m, struct registry_mail, mail)->kind, REGISTRY_MAIL_STATUS);
        registry_mail_free(container_of(m, struct registry_mail, mail));
    }
    ck_assert_uint_eq(n, 3); /* connected and waiting, not waiting, not connected */
}
END_TEST

START_TEST(reports)
{
    struct mail *m = NULL;
    struct registry_mail *x = NULL;
    json_t *o = NULL;
    json_t *ref = NULL;

    start();
    run();
    configure("a.B:1.0@g", NULL);
    for (int i = 0; i < 30; i++)
        reference_event(find("a.B:1.0@g"), "event %d", i);
    for (int i = 0; i < 30; i++)
        reference_event(find("a.B:1.0@g"), "the same");
    registry_report(r, REGISTRY_REPORT_REFERENCES, &boxes[0], &x);
    registry_take_mail(r);
    m = mailbox_take(&boxes[0]);
    ck_assert_ptr_nonnull(m);
    x = container_of(m, struct registry_mail, mail);
    ck_assert_int_eq(x->kind, REGISTRY_MAIL_REPORT);
    ck_assert_ptr_eq(x->cookie, &x);
    o = json_loadb((const char *)x->report.data, x->report.len, 0, NULL);
    ck_assert_ptr_nonnull(o);
    ref = json_array_get(json_object_get(o, "references"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(ref, "key")), "a.B:1.0@g");
    ck_assert_int_eq(json_integer_value(json_object_get(ref, "subscribes")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(ref, "events")), REFERENCE_EVENTS);
    json_decref(o);
    registry_mail_free(x);
    registry_report(r, REGISTRY_REPORT_REGISTRIES, &boxes[0], NULL);
    registry_take_mail(r);
    m = mailbox_take(&boxes[0]);
    x = container_of(m, struct registry_mail, mail);
    o = json_loadb((const char *)x->report.data, x->report.len, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(o, 0), "state")), "fake");
    json_decref(o);
    registry_mail_free(x);
    end();
}
END_TEST

START_TEST(an_address_without_a_kind)
{
    start();
    conf.address = "nacos://x";
    ck_assert_ptr_null(registry_new(&opts, &e));
    ck_assert_ptr_nonnull(strstr(e.text, "nacos://x"));
}
END_TEST

/* The thread, all functions, from two threads at once: for the thread sanitizer. */
static void *ask(void *arg)
{
    struct mailbox *box = arg;
    char name[32];

    for (int i = 0; i < 500; i++) {
        struct refkey k;

        snprintf(name, sizeof(name), "a.N%d", i % 7);
        k = (struct refkey){.interface = str_from(name)};
        registry_want(r, &k, NULL, box);
        registry_touch(r, box, str_from(name));
        registry_refresh(r, str_from(name));
        registry_evict_answer(r, box, str_from(name), true);
        for (struct mail *m = mailbox_take(box), *next = NULL; m != NULL; m = next) {
            next = m->next;
            registry_mail_free(container_of(m, struct registry_mail, mail));
        }
    }
    return NULL;
}

START_TEST(many_threads)
{
    struct str urls[] = {STR_INIT("127.0.0.1:1")};
    struct wanted_service w = {.key = {.interface = STR("a.N3")}, .urls = urls, .n_urls = 1};
    struct registry_numbers n;
    pthread_t t[N_WORKERS];

    start();
    r = registry_start(&opts, &e);
    ck_assert_ptr_nonnull(r);
    for (unsigned i = 0; i < N_WORKERS; i++) {
        mailbox_init(&boxes[i], no_wake);
        registry_add_worker(r, &boxes[i]);
    }
    for (unsigned i = 0; i < N_WORKERS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, ask, &boxes[i]), 0);
    for (int i = 0; i < 100; i++) {
        registry_configure(r, &w, (size_t)i % 2);
        registry_numbers(r, &n);
        registry_report(r, REGISTRY_REPORT_REFERENCES, &boxes[0], NULL);
    }
    for (unsigned i = 0; i < N_WORKERS; i++)
        pthread_join(t[i], NULL);
    registry_stop(r);
    for (unsigned i = 0; i < N_WORKERS; i++)
        (void)told(i);
}
END_TEST

TEST_MAIN("registry_reference", every_pair_of_states, gauges_follow_the_states, single_flight,
          a_worker_that_comes_late_gets_all_lists, equal_lists_tell_nobody,
          garbage_in_a_list_is_skipped, consumer_node_only_after_a_provider,
          consumer_node_can_be_switched_off, unknown_names_are_read_once, look_ups_are_bounded,
          look_ups_per_second_are_bounded, a_name_with_providers_stays_when_they_go,
          starting_after_three_seconds, starting_at_once_when_known_to_be_away, an_error_is_no_list,
          the_least_recently_used_goes, busy_ones_stay, used_meanwhile_is_busy,
          a_silent_worker_counts_as_busy, configured_ones_are_never_evicted, many_wait_for_room,
          idle_ones_leave, who_is_lost_to_all_workers_leaves, the_last_unlisted_one_leaves,
          a_wiped_registry_takes_nobody_away, a_rolled_back_registry_takes_nobody_away,
          names_are_resolved_again, saved_lists, fixed_providers, control_hears_of_changes, reports,
          an_address_without_a_kind, many_threads)
