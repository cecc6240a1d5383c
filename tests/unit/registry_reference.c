/* References: states, look-ups, bounds of names from outside. */
#include "tests/unit/reference_kit.h"

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

TEST_MAIN("registry_reference", every_pair_of_states, gauges_follow_the_states, single_flight,
          a_worker_that_comes_late_gets_all_lists, equal_lists_tell_nobody,
          garbage_in_a_list_is_skipped, consumer_node_only_after_a_provider,
          consumer_node_can_be_switched_off, unknown_names_are_read_once, look_ups_are_bounded,
          look_ups_per_second_are_bounded, a_name_with_providers_stays_when_they_go,
          starting_after_three_seconds, starting_at_once_when_known_to_be_away, an_error_is_no_list,
          the_least_recently_used_goes)
