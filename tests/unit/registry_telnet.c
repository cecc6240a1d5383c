/* Methods that providers of 2.6 are asked for by telnet: who is asked, when, and what becomes of the answer. */
#include "registry/reference_definitions.h"

#include "tests/unit/reference_kit.h"

#define METHODS "void a()\r\ndubbo>"

static struct telnet_ask *ask;

static void begin(bool on)
{
    start();
    conf.telnet_methods = on;
    run();
    configure("a.B", NULL);
}

/* "PORT PARAMETERS" each. */
static void providers(const char *first, const char *second)
{
    const char *const given[] = {first, second};
    struct str urls[2];
    struct list_report l = {.urls = urls, .exists = true, .czxid = 7};
    struct arena a;

    arena_init(&a);
    for (size_t i = 0; i < ARRAY_LEN(given) && given[i] != NULL; i++) {
        struct str params = STR_NONE;
        struct str port = str_cut(str_from(given[i]), ' ', &params);

        urls[l.n++] = arena_printf(&a, "dubbo://127.0.0.1:" STR_FMT "/a.B?" STR_FMT, STR_ARG(port),
                                   STR_ARG(params));
    }
    reference_on_list(find("a.B"), &l);
    arena_free(&a);
}

/* What the kind reads of application x: nothing, or a node. */
static void no_report(void)
{
    reference_on_definition(find("a.B"), STR("x"), STR_NONE, 0);
}

static void report(int64_t mzxid)
{
    reference_on_definition(
        find("a.B"), STR("x"),
        STR("{\"methods\":[{\"name\":\"b\",\"parameterTypes\":[],\"returnType\":\"int\"}]}"),
        mzxid);
}

/* The port that a worker was told to ask since the last time; 0 = none. */
static unsigned asked(void)
{
    free(ask);
    ask = NULL;
    for (unsigned i = 0; i < N_WORKERS; i++) {
        for (struct mail *m = mailbox_take(&boxes[i]), *next = NULL; m != NULL; m = next) {
            struct registry_mail *x = container_of(m, struct registry_mail, mail);

            next = m->next;
            if (x->kind == REGISTRY_MAIL_TELNET) {
                ck_assert_ptr_null(ask);
                ask = x->telnet;
                x->telnet = NULL;
            }
            registry_mail_free(x);
        }
    }
    if (ask == NULL)
        return 0;
    ck_assert_str_eq(ask->key, "a.B");
    ck_assert_str_eq(ask->application, "x");
    ck_assert_str_eq(ask->interface, "a.B");
    return ntohs(ask->addr.v4.sin_port);
}

static void answer(const char *text)
{
    struct telnet_ask *mine = ask;

    ask = NULL;
    if (text == NULL)
        err_set(&mine->why, "refused");
    registry_telnet(r, mine, text != NULL ? str_from(text) : STR_NONE);
    registry_take_mail(r);
}

static const char *source(void)
{
    const struct reference_definitions *s = find("a.B")->definitions;

    return s->v[0].definition != NULL ? definition_source_name(s->v[0].source) : "none";
}

static bool told_event(const char *part)
{
    const struct reference *ref = find("a.B");

    for (unsigned i = 0; i < ref->n_events && i < REFERENCE_EVENTS; i++) {
        if (strstr(ref->events[i].text, part) != NULL)
            return true;
    }
    return false;
}

START_TEST(only_where_it_is_wanted)
{
    begin(false);
    providers("1 application=x", NULL);
    no_report();
    ck_assert_uint_eq(asked(), 0);
    pass(DEFINITIONS_AGAIN_MS);
    no_report();
    ck_assert_uint_eq(asked(), 0);
    ck_assert(!told_event("telnet"));
    end();
}
END_TEST

START_TEST(one_provider_is_asked_once_per_change)
{
    begin(true);
    providers("1 application=x", NULL);
    ck_assert_uint_eq(asked(), 0); /* the report first */
    no_report();
    ck_assert_uint_eq(asked(), 1);
    answer(METHODS);
    ck_assert_str_eq(source(), "telnet");
    ck_assert(told_event("methods of x known by the telnet"));
    pass(DEFINITIONS_AGAIN_MS);
    ck_assert_uint_eq(n_describe, 2);
    no_report();
    ck_assert_uint_eq(asked(), 0);
    pass(3600000);
    ck_assert_uint_eq(n_describe, 2);

    providers("1 application=x", "2 application=x");
    no_report();
    ck_assert_uint_ne(asked(), 0);
    answer("void c()\r\ndubbo>");
    ck_assert_ptr_nonnull(strstr(find("a.B")->definitions->v[0].definition->text, "\"c\""));
    end();
}
END_TEST

START_TEST(calls_wait_for_the_first_answer)
{
    begin(true);
    providers("1 application=x", NULL);
    no_report();
    ck_assert(reference_definitions_follow(find("a.B")));
    ck_assert_uint_eq(asked(), 1);
    answer(METHODS);
    ck_assert(!reference_definitions_follow(find("a.B")));

    providers("1 application=x", "2 application=x");
    no_report();
    (void)asked();
    ck_assert(!reference_definitions_follow(find("a.B")));
    end();

    begin(true);
    providers("1 application=x", NULL);
    no_report();
    pass(DEFINITIONS_FOLLOW_MS);
    ck_assert(!reference_definitions_follow(find("a.B")));
    end();
}
END_TEST

/* The one started last first; then the others by turn, each later; then nobody. */
START_TEST(providers_that_do_not_answer)
{
    static const unsigned order[DEFINITIONS_TELNET_TRIES] = {2, 1, 2, 1, 2};

    begin(true);
    providers("1 application=x&timestamp=1", "2 application=x&timestamp=2");
    for (unsigned i = 0; i < DEFINITIONS_TELNET_TRIES; i++) {
        no_report();
        ck_assert_uint_eq(asked(), order[i]);
        answer(NULL);
        if (i + 1 == DEFINITIONS_TELNET_TRIES)
            break;
        pass((uint64_t)DEFINITIONS_AGAIN_MS * (i + 1) - 1);
        ck_assert_uint_eq(n_describe, i + 1);
        pass(1);
        ck_assert_uint_eq(n_describe, i + 2);
    }
    ck_assert(told_event("no methods by telnet from 127.0.0.1 port 2: refused"));
    pass(3600000);
    ck_assert_uint_eq(n_describe, DEFINITIONS_TELNET_TRIES);
    ck_assert_str_eq(source(), "none");

    providers("1 application=x&timestamp=3", NULL); /* a change: from the beginning */
    no_report();
    ck_assert_uint_eq(asked(), 1);
    end();
}
END_TEST

START_TEST(a_refusal_is_told)
{
    begin(true);
    providers("1 application=x", "2 application=x");
    no_report();
    ck_assert_uint_ne(asked(), 0);
    answer("Unsupported command: ls\r\ndubbo>");
    ck_assert(told_event(": the answer is \"Unsupported command: ls\""));
    for (int i = 0; i < 5; i++) {
        pass(DEFINITIONS_AGAIN_MS);
        no_report();
        ck_assert_uint_eq(asked(), 0);
    }
    end();
}
END_TEST

START_TEST(who_is_never_asked)
{
    static const char *const table[] = {
        "1 application=x&release=2.7.23",
        "1 application=x&release=3.3.2",
        "1 application=x&disabled=true",
    };

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        begin(true);
        providers(table[i], NULL);
        no_report();
        ck_assert_uint_eq(asked(), 0);
        pass(DEFINITIONS_AGAIN_MS);
        no_report();
        ck_assert_msg(asked() == 0, "%s", table[i]);
        ck_assert(told_event("methods of x not known: no report, and no provider of 2.6 to ask by "
                             "telnet"));
        end();
    }
}
END_TEST

START_TEST(a_report_counts_more)
{
    begin(true);
    providers("1 application=x", NULL);
    report(5);
    ck_assert_uint_eq(asked(), 0);
    ck_assert_str_eq(source(), "report");
    pass(DEFINITIONS_AGAIN_MS);
    no_report(); /* the registry lost it */
    ck_assert_uint_eq(asked(), 0);
    ck_assert_str_eq(source(), "report");
    end();

    begin(true);
    providers("1 application=x", NULL);
    no_report();
    ck_assert_uint_eq(asked(), 1);
    pass(DEFINITIONS_AGAIN_MS);
    report(5); /* published while the provider is asked */
    answer(METHODS);
    ck_assert_str_eq(source(), "report");
    end();

    begin(true);
    providers("1 application=x", NULL);
    no_report();
    ck_assert_uint_eq(asked(), 1);
    answer(METHODS);
    pass(DEFINITIONS_AGAIN_MS);
    report(5);
    ck_assert_str_eq(source(), "report");
    end();
}
END_TEST

START_TEST(a_change_while_one_is_asked)
{
    begin(true);
    providers("1 application=x&timestamp=1", NULL);
    no_report();
    ck_assert_uint_eq(asked(), 1);
    providers("1 application=x&timestamp=1", "2 application=x&timestamp=2");
    no_report();
    pass(DEFINITIONS_AGAIN_MS);
    no_report(); /* the second read after the change */
    answer(METHODS);
    n_describe = 0;
    pass(DEFINITIONS_AGAIN_MS);
    ck_assert_uint_eq(n_describe, 1);
    no_report();
    ck_assert_uint_eq(asked(), 2);
    end();
}
END_TEST

/* However many calls find the methods wrong. */
START_TEST(calls_ask_seldom)
{
    unsigned n = 0;

    begin(true);
    providers("1 application=x", NULL);
    no_report();
    ck_assert_uint_eq(asked(), 1);
    answer(METHODS);
    pass(DEFINITIONS_AGAIN_MS);
    no_report();
    n_describe = 0;
    for (int i = 0; i < 1000; i++) {
        unsigned before = n_describe;

        registry_describe(r, STR("a.B"));
        pass(10);
        if (n_describe == before)
            continue;
        no_report();
        n += asked() != 0 ? 1U : 0U;
        answer(METHODS);
    }
    ck_assert_uint_eq(n, 1000 * 10 / DEFINITIONS_APART_MS);
    end();
}
END_TEST

START_TEST(an_answer_for_nobody)
{
    begin(true);
    providers("1 application=x", NULL);
    no_report();
    ck_assert_uint_eq(asked(), 1);
    reference_free(find("a.B"), true);
    answer(METHODS);
    ck_assert_ptr_null(find("a.B"));
    end();

    begin(true);
    providers("1 application=x", NULL);
    no_report();
    ck_assert_uint_eq(asked(), 1);
    reference_free(find("a.B"), true);
    configure("a.C", "a.B");
    providers("1 application=y", NULL);
    answer(METHODS);
    ck_assert_str_eq(source(), "none");
    end();
}
END_TEST

TEST_MAIN("telnet", only_where_it_is_wanted, one_provider_is_asked_once_per_change,
          calls_wait_for_the_first_answer, providers_that_do_not_answer, a_refusal_is_told,
          who_is_never_asked, a_report_counts_more, a_change_while_one_is_asked, calls_ask_seldom,
          an_answer_for_nobody)
