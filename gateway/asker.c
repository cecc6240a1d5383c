#include "gateway/asker.h"

#include <stdlib.h>

#include "base/fatal.h"
#include "base/log.h"
#include "codec/invoke.h"
#include "registry/instance.h"

enum {
    ANSWER_MS = 3000,
    KEEP_MS = 10000, /* the calls that the answer brings find the connection open */
    BODY_MAX = 4096,
    DEPTH_MAX = 128,
};

#define SERVICE "org.apache.dubbo.metadata.MetadataService"

struct question {
    struct list link; /* asker->questions */
    struct asker *home;
    struct metadata_ask *ask; /* NULL once it was answered */
    struct peer *peer;
    struct flight flight;
    ev_timer timer;
};

static void free_question(struct question *q)
{
    if (q->flight.conn != NULL)
        conn_cancel(&q->flight, false);
    ev_timer_stop(q->home->w->loop, &q->timer);
    list_remove(&q->link);
    peer_put(q->peer);
    free(q->ask);
    free(q);
}

static void arm(struct question *q, unsigned ms)
{
    ev_timer_stop(q->home->w->loop, &q->timer);
    ev_timer_set(&q->timer, ms / 1000., 0.);
    ev_timer_start(q->home->w->loop, &q->timer);
}

/* p == NULL: it did not say. */
static void answer(struct question *q, struct str json)
{
    struct metadata_ask *ask = q->ask;

    q->ask = NULL;
    registry_metadata(q->home->registry, ask, json);
    arm(q, KEEP_MS);
}

static void on_reply(struct flight *f, const struct frame *head, const uint8_t *body)
{
    static const struct reply_opts opts = {.max_depth = DEPTH_MAX};
    struct question *q = container_of(f, struct question, flight);
    struct reply r = {0};
    struct buf json;
    bool ok = false;

    buf_init(&json, METADATA_TEXT_MAX);
    ok = body != NULL &&
         reply_decode(q->home->decoder, head, body, &opts, &json, &r, NULL, NULL) == REPLY_OK &&
         r.kind == REPLY_VALUE;
    if (!ok)
        log_info("refs", "%s: an instance does not say what it exports: status %u, " STR_FMT,
                 q->ask->app, r.status, STR_ARG(r.text.n != 0 ? r.text : r.exception_message));
    answer(q, ok ? buf_str(&json) : STR_NONE);
    buf_free(&json);
}

static void on_fail(struct flight *f, enum flight_failure why)
{
    answer(container_of(f, struct question, flight), STR_NONE);
}

static void on_timer(struct ev_loop *loop, ev_timer *t, int events)
{
    struct question *q = container_of(t, struct question, timer);

    if (q->ask == NULL) {
        free_question(q);
        return;
    }
    conn_cancel(&q->flight, true);
    answer(q, STR_NONE);
}

/* getMetadataInfo(revision).  The group is the application, whatever groups its services have. */
static void compose(const struct metadata_ask *ask, struct buf *out)
{
    const struct {
        const char *name;
        const char *value;
    } attachments[] = {
        {"path", SERVICE}, {"interface", SERVICE}, {"version", "1.0.0"}, {"group", ask->app}};

    invoke_typed(STR(SERVICE), STR("1.0.0"), STR("getMetadataInfo"), STR("Ljava/lang/String;"),
                 out);
    invoke_string(str_from(ask->revision), out);
    invoke_attachments_begin(out);
    for (size_t i = 0; i < ARRAY_LEN(attachments); i++) {
        if (!invoke_attachment(str_from(attachments[i].name), str_from(attachments[i].value), out))
            out->failed = true;
    }
    invoke_attachments_end(out);
}

static bool send_question(struct question *q)
{
    struct conn *k = peer_conn(q->peer);
    struct buf body;
    bool ok = false;

    buf_init(&body, BODY_MAX);
    compose(q->ask, &body);
    if (k != NULL && !body.failed)
        ok = conn_send(k, &q->flight, &(struct frame_parts){.part = {buf_str(&body)}}) == CONN_OK;
    buf_free(&body);
    return ok;
}

void asker_ask(struct asker *a, struct metadata_ask *ask)
{
    struct question *q = xcalloc(1, sizeof(*q));

    q->home = a;
    q->ask = ask;
    q->peer = peer_get(a->peers, &ask->addr, &a->opts);
    q->flight.on_reply = on_reply;
    q->flight.on_fail = on_fail;
    list_init(&q->flight.link);
    list_init(&q->link);
    list_add(&a->questions, &q->link);
    ev_timer_init(&q->timer, on_timer, 0., 0.);
    if (send_question(q))
        arm(q, ANSWER_MS);
    else
        answer(q, STR_NONE);
}

void asker_init(struct asker *a)
{
    list_init(&a->questions);
}

void asker_free(struct asker *a)
{
    struct list *l = NULL;

    while ((l = a->questions.next) != &a->questions)
        free_question(container_of(l, struct question, link));
}
