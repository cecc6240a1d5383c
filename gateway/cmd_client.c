/*
 * Commands that ask the running gateway through its admin interface: status, refs, providers, why, reload.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <jansson.h>

#include "base/buf.h"
#include "gateway/cmd.h"
#include "gateway/listen.h"

enum { ANSWER_MAX = 64 * 1024 * 1024, ANSWER_TIMEOUT_S = 5 };

struct client_opts {
    const char *admin;
    bool json;
    bool details;
    const char *word; /* the one argument, NULL = none */
};

static const char *const known[] = {"--admin", "--json", "-l"};

/* EXIT_GOOD, or the exit code with the reason on stderr. */
static int parse(int argc, char **argv, struct client_opts *o)
{
    const char *from_env = getenv("DUBBOGATE_ADMIN");

    *o = (struct client_opts){.admin = from_env != NULL ? from_env : "127.0.0.1:9901"};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--admin") == 0 && i + 1 < argc)
            o->admin = argv[++i];
        else if (strcmp(argv[i], "--json") == 0)
            o->json = true;
        else if (strcmp(argv[i], "-l") == 0)
            o->details = true;
        else if (argv[i][0] != '-' && o->word == NULL)
            o->word = argv[i];
        else
            return cmd_unknown_option(argv[i], known, (unsigned)ARRAY_LEN(known));
    }
    return EXIT_GOOD;
}

static int dial(const char *address, struct err *e)
{
    const struct timeval patience = {.tv_sec = ANSWER_TIMEOUT_S};
    struct sockaddr_storage sa;
    socklen_t len = 0;
    int fd = -1;

    if (!listen_parse(str_from(address), &sa, &len, e))
        return -1;
    fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0 ||
        connect(fd, (const struct sockaddr *)&sa, len) != 0) {
        err_set(e, "no gateway answers on its admin address %s: %s", address, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

static bool read_all(int fd, struct buf *in)
{
    for (;;) {
        uint8_t *at = buf_reserve(in, 65536);
        ssize_t n = at != NULL ? recv(fd, at, 65536, 0) : -1;

        if (n < 0)
            return false;
        if (n == 0)
            return true;
        buf_commit(in, (size_t)n);
    }
}

/* The status, or 0 with a sentence; `body` points into `in`. */
static unsigned ask(const struct client_opts *o, const char *method, const char *path,
                    struct buf *in, struct str *body, struct err *e)
{
    char request[1024];
    int fd = dial(o->admin, e);
    int n = snprintf(request, sizeof(request),
                     "%s %s HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", method,
                     path);
    struct str rest;
    uint64_t status = 0;

    if (fd < 0)
        return 0;
    if (n < 0 || (size_t)n >= sizeof(request) || send(fd, request, (size_t)n, MSG_NOSIGNAL) != n ||
        !read_all(fd, in)) {
        err_set(e, "the gateway on %s does not answer", o->admin);
        close(fd);
        return 0;
    }
    close(fd);

    const char *end = memmem(in->data, in->len, "\r\n\r\n", 4);
    struct str first = str_cut(buf_str(in), '\r', &rest);

    if (end == NULL || first.n < 12 || !str_to_u64(str_sub(first, 9, 12), 999, &status)) {
        err_set(e, "%s does not speak HTTP", o->admin);
        return 0;
    }
    *body = str_sub(buf_str(in), (size_t)(end - (const char *)in->data) + 4, in->len);
    return (unsigned)status;
}

static json_t *ask_json(const struct client_opts *o, const char *path, int *rc)
{
    struct buf in;
    struct str body = STR_NONE;
    struct err e = {0};
    json_t *answer = NULL;

    buf_init(&in, ANSWER_MAX);
    *rc = EXIT_GOOD;
    if (ask(o, "GET", path, &in, &body, &e) == 0) {
        fprintf(stderr, "dubbogate: %s\n", e.text);
        *rc = EXIT_NO_DAEMON;
    } else if (o->json && o->word == NULL) {
        printf(STR_FMT "\n", STR_ARG(str_trim(body)));
    } else {
        answer = json_loadb(body.p, body.n, JSON_DECODE_ANY, NULL);
        if (answer == NULL) {
            fprintf(stderr, "dubbogate: the gateway's answer is no JSON\n");
            *rc = EXIT_LOCAL;
        }
    }
    buf_free(&in);
    return answer;
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s != NULL ? s : "-";
}

static long long int_of(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static bool wanted(const struct client_opts *o, const char *key)
{
    char pattern[512];

    if (o->word == NULL)
        return true;
    if (strchr(o->word, '*') != NULL)
        return str_glob(str_from(o->word), str_from(key));
    snprintf(pattern, sizeof(pattern), "*%s*", o->word);
    return str_glob(str_from(pattern), str_from(key));
}

/* With --json and a pattern: those of the list that are wanted, as the gateway gave them. */
static void print_wanted(const struct client_opts *o, json_t *all, const char *list,
                         const char *key)
{
    json_t *from = json_object_get(all, list);
    json_t *to = json_array();
    char *text = NULL;
    size_t i = 0;
    json_t *item = NULL;

    json_array_foreach(from, i, item)
    {
        if (wanted(o, text_of(item, key)))
            json_array_append(to, item);
    }
    json_object_set_new(all, list, to);
    text = json_dumps(all, JSON_COMPACT);
    printf("%s\n", text != NULL ? text : "{}");
    free(text);
}

/* ---------------------------------------------------------------- status, reload */

static void print_list(const json_t *list, const char *title)
{
    size_t i = 0;
    json_t *item = NULL;

    json_array_foreach(list, i, item)
    {
        printf("  %s: %s\n", title, json_string_value(item));
    }
}

int cmd_status(int argc, char **argv)
{
    struct client_opts o;
    int rc = parse(argc, argv, &o);
    json_t *ready = rc == EXIT_GOOD ? ask_json(&o, "/ready", &rc) : NULL;

    if (ready == NULL)
        return rc;
    printf("%s\n", text_of(ready, "status"));
    print_list(json_object_get(ready, "degraded"), "degraded");
    print_list(json_object_get(ready, "waiting"), "waiting");
    rc = strcmp(text_of(ready, "status"), "ready") == 0 ? EXIT_GOOD : EXIT_LOCAL;
    json_decref(ready);
    return rc;
}

static void print_reloaded(const json_t *answer)
{
    size_t i = 0;
    json_t *key = NULL;

    printf("configuration %s in use\n", text_of(answer, "hash"));
    json_array_foreach(json_object_get(answer, "restart_keys"), i, key)
    {
        printf("  \"%s\" changed; takes effect after a restart\n", json_string_value(key));
    }
}

int cmd_reload(int argc, char **argv)
{
    struct client_opts o;
    struct buf in;
    struct str body = STR_NONE;
    struct err e = {0};
    int rc = parse(argc, argv, &o);
    unsigned status = 0;

    if (rc != EXIT_GOOD)
        return rc;
    buf_init(&in, ANSWER_MAX);
    status = ask(&o, "POST", "/reload", &in, &body, &e);
    if (status == 0) {
        fprintf(stderr, "dubbogate: %s\n", e.text);
        rc = EXIT_NO_DAEMON;
    } else {
        json_t *answer = json_loadb(body.p, body.n, 0, NULL);

        rc = status == 200 ? EXIT_GOOD : EXIT_LOCAL;
        if (rc == EXIT_GOOD)
            print_reloaded(answer);
        else
            fprintf(stderr, "%s", text_of(answer, "errors"));
        json_decref(answer);
    }
    buf_free(&in);
    return rc;
}

/* ---------------------------------------------------------------- refs, providers */

static void print_events(const json_t *reference)
{
    size_t i = 0;
    json_t *e = NULL;

    json_array_foreach(json_object_get(reference, "events"), i, e)
    {
        printf("    %s  %s\n", text_of(e, "time"), text_of(e, "text"));
    }
}

int cmd_refs(int argc, char **argv)
{
    struct client_opts o;
    int rc = parse(argc, argv, &o);
    json_t *all = rc == EXIT_GOOD ? ask_json(&o, "/references", &rc) : NULL;
    size_t i = 0;
    json_t *r = NULL;

    if (all == NULL)
        return rc;
    if (o.json) {
        print_wanted(&o, all, "references", "key");
        json_decref(all);
        return EXIT_GOOD;
    }
    printf("%-50s %-9s %-9s %9s %9s %8s\n", "REFERENCE", "STATE", "SOURCE", "PROVIDERS", "CALLS",
           "ERRORS");
    json_array_foreach(json_object_get(all, "references"), i, r)
    {
        if (!wanted(&o, text_of(r, "key")))
            continue;
        printf("%-50s %-9s %-9s %9lld %9lld %8lld\n", text_of(r, "key"), text_of(r, "state"),
               text_of(r, "source"), int_of(json_object_get(r, "providers"), "usable"),
               int_of(r, "calls"), int_of(r, "errors"));
        if (o.details)
            print_events(r);
    }
    json_decref(all);
    return EXIT_GOOD;
}

/* What happened to its connection last, and how its last failed call ended. */
static void print_provider(const json_t *p)
{
    const char *connection = text_of(p, "last_error");
    const char *call = text_of(p, "last_failure");

    printf("%-24s %-11s %6lld %9lld %9lld %8lld  %-13s %-20s  %s%s%s\n", text_of(p, "address"),
           text_of(p, "state"), int_of(p, "weight_now"), int_of(p, "in_flight"), int_of(p, "calls"),
           int_of(p, "errors"), text_of(p, "found"), text_of(p, "application"), connection,
           *connection != '\0' && *call != '\0' ? ", " : "", call);
}

static void print_provider_head(void)
{
    printf("%-24s %-11s %6s %9s %9s %8s  %-13s %-20s  %s\n", "ADDRESS", "STATE", "WEIGHT",
           "IN FLIGHT", "CALLS", "ERRORS", "FOUND", "APPLICATION", "LAST ERROR");
}

int cmd_providers(int argc, char **argv)
{
    struct client_opts o;
    int rc = parse(argc, argv, &o);
    json_t *all = rc == EXIT_GOOD ? ask_json(&o, "/providers", &rc) : NULL;
    size_t i = 0;
    json_t *p = NULL;
    const char *service = "";

    if (all == NULL)
        return rc;
    if (o.json) {
        print_wanted(&o, all, "providers", "service");
        json_decref(all);
        return EXIT_GOOD;
    }
    print_provider_head();
    json_array_foreach(json_object_get(all, "providers"), i, p)
    {
        if (!wanted(&o, text_of(p, "service")))
            continue;
        if (strcmp(service, text_of(p, "service")) != 0) {
            service = text_of(p, "service");
            printf("%s\n", service);
        }
        print_provider(p);
    }
    json_decref(all);
    return EXIT_GOOD;
}

/* ---------------------------------------------------------------- why */

static bool none_is_reachable(const json_t *r)
{
    const json_t *endpoints = json_object_get(r, "endpoints");
    size_t i = 0;
    json_t *p = NULL;

    json_array_foreach(endpoints, i, p)
    {
        const char *state = text_of(p, "state");

        if (strcmp(state, "up") == 0 || strcmp(state, "idle") == 0 ||
            strcmp(state, "connecting") == 0)
            return false;
    }
    return json_array_size(endpoints) != 0;
}

/* One sentence on what the reference's state means for its calls. */
static const char *verdict(const json_t *r)
{
    const char *state = text_of(r, "state");
    long long usable = int_of(json_object_get(r, "providers"), "usable");

    if (strcmp(state, "empty") == 0)
        return "the registry lists no provider: calls get 503 NO_PROVIDER until one registers";
    if (strcmp(state, "failed") == 0)
        return "the registry refused to answer for this service: see the events below";
    if (strcmp(state, "wanted") == 0 || strcmp(state, "reading") == 0)
        return "no list of providers has been read yet: calls get 503 STARTING";
    if (usable == 0)
        return "providers are listed, but none can be called: see their states below";
    if (none_is_reachable(r))
        return "no provider can be reached now: calls get 503 PROVIDER_UNREACHABLE, or wait for a new connection";
    if (strcmp(state, "snapshot") == 0)
        return "calls go to the providers of the saved list; the registry has not answered yet";
    return "calls go to the providers below; look at their states and errors";
}

/* "a.Order get(java.lang.Long,boolean)", as `ls -l` does */
static void print_method(const json_t *m)
{
    const char *comma = "";
    size_t i = 0;
    json_t *type = NULL;

    printf("    %s %s(", text_of(m, "returnType"), text_of(m, "name"));
    json_array_foreach(json_object_get(m, "parameterTypes"), i, type)
    {
        printf("%s%s", comma, json_string_value(type));
        comma = ",";
    }
    puts(")");
}

static void print_definitions(const json_t *r, bool details)
{
    const json_t *list = json_object_get(r, "definitions");
    size_t i = 0;
    size_t j = 0;
    json_t *d = NULL;
    json_t *m = NULL;

    if (json_array_size(list) == 0)
        printf("  methods are not known: no provider published them\n");
    json_array_foreach(list, i, d)
    {
        const json_t *methods = json_object_get(d, "methods");

        printf("  %zu methods known by the %s%s of %s\n", json_array_size(methods),
               text_of(d, "source"), strcmp(text_of(d, "source"), "saved") == 0 ? " list" : "",
               text_of(d, "application"));
        json_array_foreach(methods, j, m)
        {
            if (details)
                print_method(m);
        }
    }
}

static void print_rules(const json_t *r)
{
    const char *comma = "";
    size_t i = 0;
    json_t *rule = NULL;

    if (json_array_size(json_object_get(r, "rules")) == 0)
        return;
    printf(
        "  rules say which of them may take a call (nobody left: 503 NO_PROVIDER_AFTER_RULES): ");
    json_array_foreach(json_object_get(r, "rules"), i, rule)
    {
        printf("%s%s", comma, json_string_value(rule));
        comma = ", ";
    }
    puts("");
}

static void print_bad_rules(const json_t *r)
{
    size_t i = 0;
    json_t *rule = NULL;

    json_array_foreach(json_object_get(r, "rules_not_obeyed"), i, rule)
    {
        printf("  rule %s: %s (%s)\n", text_of(rule, "name"), text_of(rule, "error"),
               json_is_true(json_object_get(rule, "in_force"))
                   ? "it, a part of it or a former one is in force"
                   : "nothing of it is in force");
    }
}

static void print_why(const json_t *r, bool details)
{
    size_t i = 0;
    json_t *p = NULL;
    const json_t *endpoints = json_object_get(r, "endpoints");

    if (strcmp(text_of(r, "source"), "none") == 0)
        printf("%s: %s (no list yet)\n", text_of(r, "key"), text_of(r, "state"));
    else
        printf("%s: %s (list from the %s, of %s)\n", text_of(r, "key"), text_of(r, "state"),
               text_of(r, "source"), text_of(r, "last_change"));
    printf("  %s\n", verdict(r));
    printf("  calls %lld, errors %lld, in flight %lld\n", int_of(r, "calls"), int_of(r, "errors"),
           int_of(r, "in_flight"));
    print_rules(r);
    print_bad_rules(r);
    print_definitions(r, details);
    if (json_array_size(endpoints) != 0)
        print_provider_head();
    json_array_foreach(endpoints, i, p)
    {
        print_provider(p);
    }
    if (json_array_size(json_object_get(r, "events")) != 0)
        printf("  last events of the registry:\n");
    print_events(r);
}

static void print_registries(const struct client_opts *o)
{
    int rc = EXIT_GOOD;
    json_t *list = ask_json(o, "/registries", &rc);
    size_t i = 0;
    json_t *r = NULL;

    json_array_foreach(list, i, r)
    {
        printf("registry %s: %s %s\n", text_of(r, "name"), text_of(r, "state"),
               text_of(r, "server"));
    }
    json_decref(list);
}

static void print_no_reference(const struct client_opts *o, const json_t *refused)
{
    if (refused != NULL) {
        printf("%s: refused at %s: %s.\n", o->word, text_of(refused, "time"),
               text_of(refused, "reason"));
        print_registries(o);
        printf("  \"dubbogate ls -r zookeeper://… %.*s\" shows what the registry has.\n",
               (int)strcspn(o->word, ":@"), o->word);
        return;
    }
    printf(
        "%s: no such reference in the running gateway.\n"
        "  It is neither under services: in the configuration nor was it looked up in the last minutes\n"
        "  (a name that direct.allow does not list is not: 403 NOT_ALLOWED);\n"
        "  \"dubbogate refs\" lists what there is, \"dubbogate ls -r zookeeper://…\" what the registry has.\n",
        o->word);
}

int cmd_why(int argc, char **argv)
{
    struct client_opts o;
    int rc = parse(argc, argv, &o);
    char path[900];
    json_t *r = NULL;

    if (rc != EXIT_GOOD)
        return rc;
    if (o.word == NULL) {
        fprintf(stderr, "dubbogate: why needs INTERFACE[:VERSION][@GROUP]\n");
        return EXIT_USAGE;
    }
    snprintf(path, sizeof(path), "/references/%s", o.word);
    r = ask_json(&o, path, &rc);
    if (r == NULL)
        return rc;
    if (o.json) {
        char *text = json_dumps(r, JSON_COMPACT);

        printf("%s\n", text != NULL ? text : "{}");
        rc = json_object_get(r, "error") != NULL ? EXIT_LOCAL : EXIT_GOOD;
        free(text);
        json_decref(r);
        return rc;
    }
    if (json_object_get(r, "error") != NULL) {
        print_no_reference(&o, json_object_get(r, "refused"));
        json_decref(r);
        return EXIT_LOCAL;
    }
    print_registries(&o);
    print_why(r, o.details);
    json_decref(r);
    return EXIT_GOOD;
}
