/*
 * The registry thread without the gateway: prints every mail that a worker would get as one JSON line, and
 * takes commands on stdin.  For tests against a real ZooKeeper.
 *
 *   registry-driver --registry zookeeper://127.0.0.1:2181 [--root /dubbo] [--session MS] [--connect MS]
 *       [--state DIR] [--limit N] [--idle MS] [--watch-bytes N] [--workers N] [--instance ID]
 *       [--discovery auto|interface|application] [--metadata DIR] [--details 1] [--service KEY[=URL,…]]…
 *
 * An instance that must be asked what it exports "answers" with DIR/APP/REVISION; without such a file it does not.
 * Details: what else the list says of each provider.
 *
 * Commands, one a line:
 *   want KEY         a worker asks for a reference (all workers with "want-all KEY")
 *   wants N PREFIX   N different names PREFIX0, PREFIX1, …
 *   configure KEY…   the configured services are now these
 *   touch KEY        it was used
 *   refresh KEY
 *   busy 0|1         answer to "is it idle?"; silent: give no answer
 *   references, registries, numbers
 *   sync             prints {"mail":"sync"} when all before it has been seen by the registry thread
 *   stop             (or end of file)
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/hash.h"
#include "base/log.h"
#include "registry/registry.h"

enum { WORKERS = 8, SERVICES = 20000, LINE_LEN = 1 << 20 };

struct box {
    struct mailbox box; /* first member */
    unsigned number;
};

static struct box boxes[WORKERS];
static unsigned n_workers = 1;
static int wake_fd;
static struct registry *reg;
static bool busy;
static bool silent;
static bool details;
static const char *metadata_dir;
static struct wanted_service services[SERVICES];
static size_t n_services;
static struct arena service_texts;

static void wake(struct mailbox *box)
{
    uint64_t one = 1;

    if (write(wake_fd, &one, sizeof(one)) < 0)
        fatal("eventfd");
}

/* ---------------------------------------------------------------- output */

static void print_line(json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);

    puts(text);
    fflush(stdout);
    free(text);
    json_decref(o);
}

static json_t *new_line(const char *mail)
{
    json_t *o = json_object();

    json_object_set_new(o, "mail", json_string(mail));
    json_object_set_new(o, "ms", json_integer((json_int_t)clock_ms()));
    return o;
}

static void set_text(json_t *o, const char *key, struct str s)
{
    if (s.n != 0)
        json_object_set_new(o, key, json_stringn(s.p, s.n));
}

/* What the URL gave, as far as it gave it. */
static json_t *details_json(const struct provider *p)
{
    json_t *o = json_object();

    set_text(o, "path", p->path);
    set_text(o, "application", p->application);
    set_text(o, "release", p->release);
    set_text(o, "token", p->token);
    set_text(o, "loadbalance", p->loadbalance);
    set_text(o, "dubbo.tag", p->tag);
    json_object_set_new(o, "weight", json_integer(p->weight));
    json_object_set_new(o, "warmup", json_integer(p->warmup_ms));
    json_object_set_new(o, "timeout", json_integer(p->timeout_ms));
    json_object_set_new(o, "connections", json_integer(p->connections));
    json_object_set_new(o, "dynamic", json_boolean(p->dynamic));
    json_object_set_new(o, "deprecated", json_boolean(p->deprecated));
    for (size_t i = 0; i < p->n_method_params; i++) {
        const struct method_param *m = &p->params->methods[i];
        char key[300];

        snprintf(key, sizeof(key), STR_FMT ".timeout", STR_ARG(m->method));
        if (m->timeout_ms != 0)
            json_object_set_new(o, key, json_integer(m->timeout_ms));
        snprintf(key, sizeof(key), STR_FMT ".loadbalance", STR_ARG(m->method));
        set_text(o, key, m->loadbalance);
    }
    return o;
}

static json_t *directory_json(const struct directory *d)
{
    static const char *const sources[] = {
        [DIRECTORY_REGISTRY] = "registry",
        [DIRECTORY_STATIC] = "static",
        [DIRECTORY_SNAPSHOT] = "snapshot",
    };
    json_t *o = json_object();
    json_t *list = json_array();
    json_t *more = json_array();

    json_object_set_new(o, "source", json_string(sources[d->source]));
    json_object_set_new(o, "usable", json_integer((json_int_t)d->n_usable));
    for (size_t i = 0; i < d->n; i++) {
        struct str host = d->providers[i].host;
        bool six = str_find(host, ':') != host.n;
        char text[400];

        snprintf(text, sizeof(text), "%s" STR_FMT "%s:%u%s%s%s", six ? "[" : "", STR_ARG(host),
                 six ? "]" : "", (unsigned)d->providers[i].port,
                 d->providers[i].unlisted ? " unlisted" : "",
                 d->providers[i].unusable != USABLE ? " " : "",
                 d->providers[i].unusable != USABLE ? unusable_name(d->providers[i].unusable) : "");
        json_array_append_new(list, json_string(text));
        if (details)
            json_array_append_new(more, details_json(&d->providers[i]));
    }
    json_object_set_new(o, "providers", list);
    json_object_set_new(o, "details", more);
    return o;
}

static const char *const refusals[] = {
    [REFUSAL_NONE] = "none",
    [REFUSAL_UNKNOWN] = "unknown",
    [REFUSAL_LIMIT] = "limit",
    [REFUSAL_STARTING] = "starting",
};

static void print_mail(const struct registry_mail *m, unsigned worker)
{
    static const char *const kinds[] = {
        [REGISTRY_MAIL_DIRECTORY] = "directory",
        [REGISTRY_MAIL_REFUSED] = "refused",
        [REGISTRY_MAIL_EVICT] = "evict",
        [REGISTRY_MAIL_GONE] = "gone",
        [REGISTRY_MAIL_REPORT] = "report",
        [REGISTRY_MAIL_STATUS] = "status",
        [REGISTRY_MAIL_DEFINITIONS] = "definitions",
        [REGISTRY_MAIL_ASK] = "ask",
        [REGISTRY_MAIL_TELNET] = "telnet",
    };
    json_t *o = NULL;

    if (m->cookie != NULL) {
        free(m->cookie);
        print_line(new_line("sync"));
        return;
    }
    o = new_line(kinds[m->kind]);
    json_object_set_new(o, "worker", json_integer(worker));
    if (m->key_text != NULL)
        json_object_set_new(o, "key", json_string(m->key_text));
    if (m->kind == REGISTRY_MAIL_REFUSED)
        json_object_set_new(o, "refusal", json_string(refusals[m->refusal]));
    if (m->kind == REGISTRY_MAIL_DIRECTORY)
        json_object_update_new(o, directory_json(m->directory));
    if (m->kind == REGISTRY_MAIL_REPORT)
        json_object_set_new(o, "report",
                            json_loadb((const char *)m->report.data, m->report.len, 0, NULL));
    print_line(o);
}

static void answer_ask(struct registry_mail *m)
{
    struct metadata_ask *ask = m->ask;
    char path[1000];
    json_t *o = NULL;
    char *text = NULL;

    if (snprintf(path, sizeof(path), "%s/%s/%s", metadata_dir != NULL ? metadata_dir : "/nowhere",
                 ask->app, ask->revision) < (int)sizeof(path))
        o = json_load_file(path, 0, NULL);
    text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
    m->ask = NULL;
    registry_metadata(reg, ask, text != NULL ? str_from(text) : STR_NONE);
    free(text);
    json_decref(o);
}

static void take_mail(struct box *b)
{
    struct mail *m = mailbox_take(&b->box);

    while (m != NULL) {
        struct mail *next = m->next;
        struct registry_mail *r = container_of(m, struct registry_mail, mail);

        if (r->kind == REGISTRY_MAIL_EVICT && !silent)
            registry_evict_answer(reg, &b->box, str_from(r->key_text), !busy);
        print_mail(r, b->number);
        if (r->kind == REGISTRY_MAIL_ASK)
            answer_ask(r);
        registry_mail_free(r);
        m = next;
    }
}

static void print_numbers(void)
{
    struct registry_numbers n;
    struct rusage u;
    json_t *o = new_line("numbers");

    registry_numbers(reg, &n);
    getrusage(RUSAGE_SELF, &u);
#define ADD(field) json_object_set_new(o, #field, json_integer((json_int_t)n.field))
    ADD(subscriptions_total);
    ADD(evictions_total);
    ADD(writes_create_total);
    ADD(writes_delete_total);
    ADD(events_total);
    ADD(reconnects_total);
    ADD(sessions_expired_total);
    ADD(watches);
    ADD(consumer_nodes);
    ADD(snapshot_writable);
    ADD(connected);
    ADD(disconnected);
    ADD(waiting);
#undef ADD
    json_object_set_new(o, "cpu_ms",
                        json_integer(u.ru_utime.tv_sec * 1000 + u.ru_utime.tv_usec / 1000 +
                                     u.ru_stime.tv_sec * 1000 + u.ru_stime.tv_usec / 1000));
    json_object_set_new(o, "max_rss_kb", json_integer(u.ru_maxrss));
    print_line(o);
}

/* ---------------------------------------------------------------- input */

static struct refkey parse_key(const char *text)
{
    struct refkey k;
    struct err e;

    if (!refkey_parse(str_from(text), &k, &e))
        fatal("%s: %s", text, e.text);
    return k;
}

/* KEY[=URL,…]; lives until the end. */
static void add_service(const char *text)
{
    struct wanted_service *w = &services[n_services++];
    struct str urls = STR_NONE;
    struct str *v = arena_alloc(&service_texts, 64 * sizeof(*v));
    struct str key = str_cut(arena_str(&service_texts, str_from(text)), '=', &urls);

    *w = (struct wanted_service){.key = parse_key(arena_cstr(&service_texts, key)), .urls = v};
    while (urls.n != 0 && w->n_urls < 64)
        v[w->n_urls++] = str_cut(urls, ',', &urls);
}

static void want(const char *key, unsigned first, unsigned last)
{
    struct refkey k = parse_key(key);

    for (unsigned i = first; i < last; i++)
        registry_want(reg, &k, NULL, &boxes[i].box);
}

static void want_many(const char *args)
{
    char name[300];
    char prefix[200] = "";
    unsigned long n = strtoul(args, NULL, 10);

    if (strchr(args, ' ') != NULL)
        snprintf(prefix, sizeof(prefix), "%s", strchr(args, ' ') + 1);
    for (unsigned long i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%s%lu", prefix, i);
        want(name, 0, 1);
    }
}

static bool run_command(char *line)
{
    char *save = NULL;
    char *word = strtok_r(line, " ", &save);
    const char *arg = save != NULL ? save : "";

    if (word == NULL)
        return true;
    if (strcmp(word, "want") == 0)
        want(arg, 0, 1);
    else if (strcmp(word, "want-all") == 0)
        want(arg, 0, n_workers);
    else if (strcmp(word, "wants") == 0)
        want_many(arg);
    else if (strcmp(word, "touch") == 0)
        registry_touch(reg, &boxes[0].box, str_from(arg));
    else if (strcmp(word, "refresh") == 0)
        registry_refresh(reg, str_from(arg));
    else if (strcmp(word, "busy") == 0)
        busy = arg[0] == '1';
    else if (strcmp(word, "silent") == 0)
        silent = arg[0] == '1';
    else if (strcmp(word, "references") == 0)
        registry_report(reg, REGISTRY_REPORT_REFERENCES, &boxes[0].box, NULL);
    else if (strcmp(word, "registries") == 0)
        registry_report(reg, REGISTRY_REPORT_REGISTRIES, &boxes[0].box, NULL);
    else if (strcmp(word, "sync") == 0)
        registry_report(reg, REGISTRY_REPORT_REGISTRIES, &boxes[0].box, xcalloc(1, 1));
    else if (strcmp(word, "numbers") == 0)
        print_numbers();
    else if (strcmp(word, "configure") == 0) {
        n_services = 0;
        while ((word = strtok_r(NULL, " ", &save)) != NULL)
            add_service(word);
        registry_configure(reg, services, n_services);
    } else
        return strcmp(word, "stop") != 0;
    return true;
}

/* Runs the whole lines of `buffer` and keeps the rest.  False: stop. */
static bool run_commands(char *buffer, size_t *n)
{
    char *at = buffer;
    char *end = NULL;

    while ((end = memchr(at, '\n', *n - (size_t)(at - buffer))) != NULL) {
        *end = '\0';
        if (!run_command(at))
            return false;
        at = end + 1;
    }
    *n -= (size_t)(at - buffer);
    memmove(buffer, at, *n);
    return true;
}

static void serve(void)
{
    static char buffer[LINE_LEN];
    size_t n = 0;
    struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = wake_fd, .events = POLLIN}};

    for (;;) {
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[1].revents != 0) {
            uint64_t count = 0;

            if (read(wake_fd, &count, sizeof(count)) < 0)
                continue;
            for (unsigned i = 0; i < n_workers; i++)
                take_mail(&boxes[i]);
        }
        if (p[0].revents != 0) {
            ssize_t got = read(STDIN_FILENO, buffer + n, sizeof(buffer) - n);

            if (got <= 0)
                return;
            n += (size_t)got;
            if (!run_commands(buffer, &n))
                return;
        }
    }
}

/* ---------------------------------------------------------------- start */

static enum discovery discovery_of(const char *name)
{
    if (strcmp(name, "auto") == 0)
        return DISCOVERY_AUTO;
    if (strcmp(name, "application") == 0)
        return DISCOVERY_APPLICATION;
    if (strcmp(name, "interface") != 0)
        fatal("unknown discovery %s", name);
    return DISCOVERY_INTERFACE;
}

static void parse_options(int argc, char **argv, struct registry_conf *c, struct registry_opts *o)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i];
        const char *value = argv[i + 1];
        uint32_t n = (uint32_t)strtoul(value, NULL, 10);

        if (strcmp(name, "--registry") == 0)
            c->address = value;
        else if (strcmp(name, "--root") == 0)
            c->root = value;
        else if (strcmp(name, "--session") == 0)
            c->session_timeout_ms = n;
        else if (strcmp(name, "--connect") == 0)
            c->connect_timeout_ms = n;
        else if (strcmp(name, "--state") == 0)
            o->state_dir = value;
        else if (strcmp(name, "--limit") == 0)
            o->max_references = n;
        else if (strcmp(name, "--idle") == 0)
            o->reference_idle_ms = n;
        else if (strcmp(name, "--watch-bytes") == 0)
            o->watch_bytes = n;
        else if (strcmp(name, "--instance") == 0)
            o->consumer_instance = value;
        else if (strcmp(name, "--workers") == 0)
            n_workers = n < WORKERS ? n : WORKERS;
        else if (strcmp(name, "--discovery") == 0)
            c->discovery = discovery_of(value);
        else if (strcmp(name, "--metadata") == 0)
            metadata_dir = value;
        else if (strcmp(name, "--details") == 0)
            details = n != 0;
        else if (strcmp(name, "--service") == 0)
            add_service(value);
        else
            fatal("unknown option %s", name);
    }
}

int main(int argc, char **argv)
{
    struct registry_conf c = {
        .name = "main",
        .root = "/dubbo",
        .config_root = "/dubbo/config/dubbo",
        .discovery = DISCOVERY_INTERFACE,
        .session_timeout_ms = 4000,
        .connect_timeout_ms = 1000,
        .register_consumer = true,
    };
    struct registry_opts o = {
        .registries = &c,
        .application = "driver",
        .consumer_address = "auto",
        .consumer_instance = "8080",
        .max_references = 1024,
        .reference_idle_ms = 3600000,
        .control = &boxes[0].box,
    };
    struct log_opts lo = {.level = LOG_INFO, .repeat_ms = 0};
    struct err e = {0};

    hash_seed(hash_random_seed());
    arena_init(&service_texts);
    wake_fd = eventfd(0, EFD_CLOEXEC);
    parse_options(argc, argv, &c, &o);
    o.n_registries = c.address != NULL ? 1 : 0;
    if (!log_open(&lo, &e))
        fatal("%s", e.text);
    for (unsigned i = 0; i < n_workers; i++) {
        mailbox_init(&boxes[i].box, wake);
        boxes[i].number = i;
    }
    reg = registry_start(&o, &e);
    if (reg == NULL)
        fatal("%s", e.text);
    for (unsigned i = 0; i < n_workers; i++)
        registry_add_worker(reg, &boxes[i].box);
    registry_configure(reg, services, n_services);
    serve();
    registry_stop(reg);
    for (unsigned i = 0; i < n_workers; i++)
        take_mail(&boxes[i]);
    print_line(new_line("stopped"));
    arena_free(&service_texts);
    return 0;
}
