/* References: eviction, lists that shrink, saved lists, reports, threads. */
#include "tests/unit/reference_kit.h"

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

TEST_MAIN("registry_reference_life", busy_ones_stay, used_meanwhile_is_busy,
          a_silent_worker_counts_as_busy, configured_ones_are_never_evicted, many_wait_for_room,
          idle_ones_leave, who_is_lost_to_all_workers_leaves, the_last_unlisted_one_leaves,
          a_wiped_registry_takes_nobody_away, a_rolled_back_registry_takes_nobody_away,
          names_are_resolved_again, saved_lists, fixed_providers, control_hears_of_changes, reports,
          an_address_without_a_kind, many_threads)
