#include "registry/judge.h"

#include "tests/unit/registry_data.h"

static struct arena a;
static struct provider now[64];
static size_t n_now;
static struct provider kept[64];
static size_t n_kept;
static struct directory *old;
static struct judge_window window;
static uint64_t at_ms;

/* "1 2 -3 !4": ports; '-' unlisted, '!' unusable. */
static size_t parse(const char *text, struct provider *out)
{
    size_t n = 0;
    struct str rest = str_from(text);

    while (rest.n != 0) {
        struct str one = str_cut(rest, ' ', &rest);
        bool unlisted = str_starts(one, STR("-"));
        bool unusable = str_starts(one, STR("!"));
        char url[128];
        struct err e;

        if (one.n == 0)
            continue;
        if (unlisted || unusable)
            one = str_sub(one, 1, one.n);
        snprintf(url, sizeof(url), "dubbo://127.0.0.1:" STR_FMT "/a.B", STR_ARG(one));
        ck_assert(provider_from_url(str_from(url), &a, &out[n], &e));
        out[n].unlisted = unlisted;
        out[n++].unusable = unusable ? UNUSABLE_DISABLED : USABLE;
    }
    return n;
}

static void known(const char *text)
{
    const struct refkey k = {.interface = STR("a.B")};
    struct provider v[64];
    size_t n = parse(text, v);

    directory_put(old);
    old = directory_build(&k, v, n, DIRECTORY_REGISTRY);
}

static void start(const char *text)
{
    window = (struct judge_window){0};
    at_ms = 1000000;
    known(text);
}

static enum judgement judge(const char *text, bool same_list)
{
    n_now = parse(text, now);

    const struct judge_input in = {
        .old = old, .now = now, .n_now = n_now, .same_list = same_list, .now_ms = at_ms};

    return judge_list(&in, &window, kept, &n_kept);
}

/* The kept ones, as ports; all must be unlisted. */
static bool keeps(const char *expected)
{
    struct buf b;
    bool same = false;

    buf_init(&b, 4096);
    for (size_t i = 0; i < n_kept; i++) {
        ck_assert(kept[i].unlisted);
        buf_printf(&b, "%s%u", i != 0 ? " " : "", (unsigned)kept[i].port);
    }
    same = buf_is(&b, expected);
    buf_free(&b);
    return same;
}

/* What the caller does between two lists. */
static void take(void)
{
    const struct refkey k = {.interface = STR("a.B")};
    struct provider v[128];

    memcpy(v, now, n_now * sizeof(*v));
    memcpy(v + n_now, kept, n_kept * sizeof(*v));
    struct directory *d = directory_build(&k, v, n_now + n_kept, DIRECTORY_REGISTRY);

    directory_put(old);
    old = d;
}

START_TEST(nothing_gone)
{
    start("1 2 3");
    ck_assert_int_eq(judge("3 2 1", true), JUDGED_NORMAL);
    ck_assert(keeps(""));
    ck_assert_int_eq(judge("1 2 3 4 5", true), JUDGED_NORMAL);
    ck_assert(keeps(""));
    start("");
    ck_assert_int_eq(judge("", true), JUDGED_NORMAL);
    ck_assert_int_eq(judge("1", false), JUDGED_REPLACED);
    ck_assert(keeps(""));
}
END_TEST

START_TEST(one_of_several_goes_at_once)
{
    start("1 2 3");
    ck_assert_int_eq(judge("1 3", true), JUDGED_NORMAL);
    ck_assert(keeps(""));
    start("1 2");
    ck_assert_int_eq(judge("2", true), JUDGED_NORMAL);
    ck_assert(keeps(""));
}
END_TEST

START_TEST(most_at_once_stay)
{
    start("1 2 3");
    ck_assert_int_eq(judge("3", true), JUDGED_MASS);
    ck_assert(keeps("1 2"));
    start("1 2 3 4");
    ck_assert_int_eq(judge("", true), JUDGED_MASS);
    ck_assert(keeps("1 2 3 4"));
    start("7");
    ck_assert_int_eq(judge("", true), JUDGED_MASS);
    ck_assert(keeps("7"));
    /* others came instead: that is a deployment, but who went says nothing */
    start("1 2");
    ck_assert_int_eq(judge("3 4", true), JUDGED_NORMAL);
    ck_assert(keeps(""));
}
END_TEST

START_TEST(one_by_one_within_the_window)
{
    start("1 2 3 4");
    ck_assert_int_eq(judge("2 3 4", true), JUDGED_NORMAL);
    take();
    at_ms += 1000;
    ck_assert_int_eq(judge("3 4", true), JUDGED_NORMAL);
    take();
    at_ms += 1000;
    ck_assert_int_eq(judge("4", true), JUDGED_MASS);
    ck_assert(keeps("3"));
    take();
    at_ms += 1000;
    ck_assert_int_eq(judge("", true), JUDGED_MASS);
    ck_assert(keeps("3 4"));
    /* the same at a slower pace is a scale-down, until the last one */
    start("1 2 3 4");
    for (int i = 0; i < 2; i++) {
        at_ms += JUDGE_WINDOW_MS + 1;
        ck_assert_int_eq(judge(i == 0 ? "2 3 4" : "3 4", true), JUDGED_NORMAL);
        take();
    }
}
END_TEST

START_TEST(restarts_one_after_another_are_no_mass)
{
    static const char *const steps[] = {"2 3", "1 2 3", "1 3", "1 2 3", "1 2", "1 2 3"};

    start("1 2 3");
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        at_ms += 300;
        ck_assert_msg(judge(steps[i], true) == JUDGED_NORMAL, "step %zu", i);
        ck_assert(keeps(""));
        take();
    }
    /* they start small: what was listed at first is not the measure */
    start("1");
    (void)judge("1 2 3", true);
    take();
    at_ms += 100;
    ck_assert_int_eq(judge("2 3", true), JUDGED_NORMAL);
}
END_TEST

START_TEST(another_list)
{
    start("1 2 3");
    ck_assert_int_eq(judge("", false), JUDGED_REPLACED);
    ck_assert(keeps("1 2 3"));
    ck_assert_int_eq(judge("2 9", false), JUDGED_REPLACED);
    ck_assert(keeps("1 3"));
}
END_TEST

START_TEST(unlisted_ones_stay_until_listed_and_removed)
{
    start("-1 -2 3 4 5");
    ck_assert_int_eq(judge("3 4 5", true), JUDGED_NORMAL);
    ck_assert(keeps("1 2"));
    take();
    at_ms += JUDGE_WINDOW_MS + 1;
    ck_assert_int_eq(judge("1 3 4 5", true), JUDGED_NORMAL); /* 1 is back … */
    ck_assert(keeps("2"));
    take();
    at_ms += JUDGE_WINDOW_MS + 1;
    ck_assert_int_eq(judge("3 4 5", true), JUDGED_NORMAL); /* … and deregisters */
    ck_assert(keeps("2"));
    /* unlisted ones are not counted as listed */
    start("-1 -2 -3 -4 5 6 7");
    ck_assert_int_eq(judge("5 6", true), JUDGED_NORMAL);
    ck_assert(keeps("1 2 3 4"));
}
END_TEST

START_TEST(unusable_ones_never_stay)
{
    start("1 !2 !3");
    ck_assert_int_eq(judge("", false), JUDGED_REPLACED);
    ck_assert(keeps("1"));
}
END_TEST

START_TEST(large_lists_are_quick)
{
    enum { N = 10000 };
    static struct provider v[N];
    static struct provider out[N];
    const struct refkey k = {.interface = STR("a.B")};
    struct err e;
    size_t n_out = 0;

    for (unsigned i = 0; i < N; i++) {
        char url[64];

        snprintf(url, sizeof(url), "dubbo://10.0.%u.%u:20880/a.B", i / 250, i % 250);
        ck_assert(provider_from_url(str_from(url), &a, &v[i], &e));
    }
    directory_put(old);
    old = directory_build(&k, v, N, DIRECTORY_REGISTRY);
    window = (struct judge_window){0};

    const struct judge_input in = {
        .old = old, .now = v, .n_now = N - 10, .same_list = true, .now_ms = 1};

    for (int i = 0; i < 10;
         i++) /* walking the list for each would take minutes under a sanitizer */
        ck_assert_int_eq(judge_list(&in, &window, out, &n_out), JUDGED_NORMAL);
    ck_assert_uint_eq(n_out, 0);
}
END_TEST

TEST_MAIN("registry_judge", nothing_gone, one_of_several_goes_at_once, most_at_once_stay,
          one_by_one_within_the_window, restarts_one_after_another_are_no_mass, another_list,
          unlisted_ones_stay_until_listed_and_removed, unusable_ones_never_stay,
          large_lists_are_quick)
