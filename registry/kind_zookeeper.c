#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/url.h"
#include "registry/zk.h"

/* ---------------------------------------------------------------- the library's log */

enum { LINES_PER_SECOND = 10, TEXTS = 32 };

/* The library repeats itself thousands of times a second when things go wrong, from several threads. */
static struct {
    pthread_mutex_t lock;
    struct {
        uint64_t text; /* hash */
        uint64_t second;
        unsigned lines;
        unsigned dropped;
    } slot[TEXTS];
} said = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* May this text be written?  `dropped`: how many like it were not. */
static bool may_say(const char *text, unsigned *dropped)
{
    uint64_t h = hash_bytes(text, strlen(text));
    uint64_t second = clock_ms() / 1000;
    bool ok = false;

    pthread_mutex_lock(&said.lock);
    if (said.slot[h % TEXTS].text != h || said.slot[h % TEXTS].second != second) {
        *dropped = said.slot[h % TEXTS].text == h ? said.slot[h % TEXTS].dropped : 0;
        said.slot[h % TEXTS].text = h;
        said.slot[h % TEXTS].second = second;
        said.slot[h % TEXTS].lines = said.slot[h % TEXTS].dropped = 0;
    }
    ok = ++said.slot[h % TEXTS].lines <= LINES_PER_SECOND;
    said.slot[h % TEXTS].dropped += ok ? 0U : 1U;
    pthread_mutex_unlock(&said.lock);
    return ok;
}

/* "2026-01-15 08:30:12,345:4711(0x7f…):ZOO_ERROR@function@line: text" */
void zk_on_log(const char *line)
{
    const char *text = strstr(line, "ZOO_");
    unsigned dropped = 0;

    if (text == NULL)
        text = line;
    if (!may_say(text, &dropped))
        return;
    if (dropped != 0)
        log_info("zookeeper", "%s (and %u more)", text, dropped);
    else
        log_info("zookeeper", "%s", text);
}

/* ---------------------------------------------------------------- the row */

/* In home->arena. */
static char *shown(const struct source *s)
{
    struct buf b;
    char *text = NULL;

    buf_init(&b, URL_MAX + 8);
    url_print_masked(str_from(s->conf.address), &b);
    text = arena_cstr(&s->home->arena, buf_str(&b));
    buf_free(&b);
    return text;
}

static void *zk_open(struct source *s, struct err *e)
{
    struct zk *z = xcalloc(1, sizeof(*z));
    struct zk_address address;
    struct err why = {0};

    z->source = s;
    list_init(&z->sessions);
    zk_config_init(z);
    if (!zk_address_of(s->conf.address, &s->home->arena, &address, &why)) {
        err_set(e, "registry %s: %s", s->conf.name, why.text);
        free(z);
        return NULL;
    }
    z->hosts = address.hosts;
    z->auth = address.auth;
    z->shown = shown(s);
    zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
    (void)zk_session_new(z);
    return z;
}

static void zk_close(void *kind)
{
    struct zk *z = kind;

    ASSERT(z->paths == NULL);
    zk_config_free(z);
    zk_apps_free(z);
    zk_sessions_close(z);
    free(z);
}

static bool zk_tick(void *kind, uint64_t now_ms)
{
    const struct zk *z = kind;
    bool more = false;

    list_each(l, &z->sessions) {
        more = zk_session_tick(container_of(l, struct zk_session, link), now_ms) || more;
    }
    return more;
}

static const char *state_name(const struct zk_session *s)
{
    if (s->connected)
        return "connected";
    return s->handle != NULL ? "connecting" : "waiting";
}

static json_t *session_json(const struct zk_session *s)
{
    char id[24];
    json_t *o = json_object();
    size_t n_paths = 0;

    list_each(l, &s->paths) {
        n_paths++;
    }
    snprintf(id, sizeof(id), "0x%llx", (unsigned long long)s->id);
    json_object_set_new(o, "state", json_string(state_name(s)));
    json_object_set_new(o, "server", json_string(s->server));
    json_object_set_new(o, "session", json_string(id));
    json_object_set_new(
        o, "age_s",
        json_integer(s->connected ? (json_int_t)((clock_ms() - s->started_ms) / 1000) : 0));
    json_object_set_new(o, "timeout_ms", json_integer(s->timeout_ms));
    json_object_set_new(o, "interfaces", json_integer((json_int_t)n_paths));
    json_object_set_new(o, "watch_bytes", json_integer((json_int_t)s->watch_bytes));
    return o;
}

static void zk_report(const void *kind, json_t *into)
{
    const struct zk *z = kind;
    const struct zk_session *first = container_of(z->sessions.next, struct zk_session, link);
    json_t *list = json_array();

    list_each(l, &z->sessions) {
        json_array_append_new(list, session_json(container_of(l, struct zk_session, link)));
    }
    json_object_set_new(into, "state",
                        json_string(z->source->connected ? "connected" : state_name(first)));
    json_object_set_new(into, "server",
                        json_string(first->server[0] != '\0' ? first->server : z->shown));
    json_object_set_new(into, "session",
                        json_incref(json_object_get(json_array_get(list, 0), "session")));
    json_object_set_new(into, "new_tree", json_boolean(z->new_tree));
    json_object_set_new(into, "sessions", list);
    zk_report_rules(z, into);
}

static bool zk_check(const char *address, struct err *e)
{
    struct arena a;
    struct zk_address parts;
    bool ok = false;

    arena_init(&a);
    ok = zk_address_of(address, &a, &parts, e);
    arena_free(&a);
    return ok;
}

const struct registry_kind registry_kind_zookeeper = {
    .scheme = "zookeeper",
    .open = zk_open,
    .close = zk_close,
    .watch = zk_watch,
    .unwatch = zk_unwatch,
    .refresh = zk_refresh,
    .describe = zk_describe,
    .publish = zk_publish,
    .unpublish = zk_unpublish,
    .node_name = zk_node_name,
    .print_apps = zk_print_apps,
    .save = zk_save_revisions,
    .save_rules = zk_save_rules,
    .rules = zk_rules_of,
    .bad_rules = zk_bad_rules,
    .on_metadata = zk_on_metadata,
    .tick = zk_tick,
    .report = zk_report,
    .check = zk_check,
};
