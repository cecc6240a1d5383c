/*
 * Our consumer node of each reference (docs/REGISTRY.md sections 4.2 and 4.3): written once per session, only
 * after a read that showed a provider.  Its name holds neither time nor process, so a restart meets its own
 * node again and takes it over.
 *
 *   CREATE --node exists--> LOOK --owned by an older session of ours--> TAKE_OVER (delete and create at once)
 *      |                     +--owned by this session: a create whose answer was lost--> stands
 *      +--no `consumers` node--> PARENT --> CREATE
 *
 * With credentials ACL comes first, the ACL of `consumers`, and where there is none yet PARENT_ACL, that of the interface.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fatal.h"
#include "base/log.h"
#include "registry/consumer.h"
#include "registry/zk.h"

enum {
    PATH_MAX_LEN = 32768,
    BURST = 20,    /* then one node per millisecond */
    TRIES_MAX = 5, /* steps in a row, and attempts before RETRY_LONG_MS */
    RETRY_LOST_MS = 500,
    RETRY_MS = 5000,
    RETRY_LONG_MS = 300000, /* e.g. no permission: calls work, the node is asked for now and then */
    CHECK_MS = 3600000,     /* does it still stand and is it ours? */
};

enum step {
    STEP_ACL,
    STEP_PARENT_ACL,
    STEP_CREATE,
    STEP_PARENT,
    STEP_LOOK,
    STEP_TAKE_OVER,
    STEP_CHECK
};

static void send_step(struct zk_session *s, struct zk_ref *zr, enum step step, int32_t version);

/* ---------------------------------------------------------------- names */

static void add_node_name(const struct zk *z, const struct reference *ref, struct buf *out)
{
    const struct registry_opts *o = &z->source->home->opts;
    const struct consumer_opts co = {
        .ip = str_from(z->consumer_ip),
        .application = str_from(o->application != NULL ? o->application : ""),
        .instance = str_from(o->consumer_instance != NULL ? o->consumer_instance : ""),
        .parameters = o->consumer_parameters,
        .n_parameters = o->n_consumer_parameters,
    };

    consumer_node(&ref->key, &co, out);
}

void zk_node_name(const struct reference *ref, struct buf *out)
{
    const struct zk_ref *zr = ref->kind_ref;

    if (zr != NULL && zr->node == NODE_STANDING)
        add_node_name(ref->source->impl, ref, out);
}

/* NULL when it would be too long for any server. */
static char *path_of_node(const struct zk *z, const struct reference *ref, enum step step)
{
    struct buf b;
    char *path = NULL;

    buf_init(&b, PATH_MAX_LEN);
    buf_printf(&b, "%s/" STR_FMT "%s", z->source->conf.root, STR_ARG(ref->key.interface),
               step == STEP_PARENT_ACL ? "" : "/consumers");
    if (step != STEP_PARENT_ACL && step != STEP_PARENT && step != STEP_ACL) {
        buf_add_u8(&b, '/');
        add_node_name(z, ref, &b);
    }
    if (!b.failed)
        path = strndup((const char *)b.data, b.len);
    buf_free(&b);
    return path;
}

/* ---------------------------------------------------------------- states */

static void set_node(struct zk_ref *zr, enum node_state to)
{
    struct zk_session *s = zr->path->session;
    struct counter *c = &s->zk->source->home->numbers.consumer_nodes;
    struct list *const queues[] = {
        [NODE_QUEUED] = &s->publish, [NODE_STANDING] = &s->standing, [NODE_RETRY] = &s->retry};

    if (zr->node != NODE_STANDING && to == NODE_STANDING)
        counter_set(c, counter_get(c) + 1);
    if (zr->node == NODE_STANDING && to != NODE_STANDING)
        counter_set(c, counter_get(c) - 1);
    zr->node = to;
    list_remove(&zr->queue);
    if (to == NODE_QUEUED || to == NODE_STANDING || to == NODE_RETRY)
        list_add(queues[to], &zr->queue);
}

static void stands(struct zk_ref *zr)
{
    zr->tries = 0;
    zr->due_ms = clock_ms() + CHECK_MS;
    set_node(zr, NODE_STANDING);
    reference_event(zr->ref, "consumer node stands");
}

/* The node is not needed for calls: they go on. */
static void fails(struct zk_ref *zr, int rc, const char *why)
{
    bool lost = zk_is_lost(rc);
    bool hopeless = rc == ZNOAUTH || (!lost && ++zr->tries >= TRIES_MAX);

    zr->due_ms = clock_ms() + (lost ? RETRY_LOST_MS : hopeless ? RETRY_LONG_MS : RETRY_MS);
    set_node(zr, NODE_RETRY);
    if (lost)
        return;
    reference_event(zr->ref, "consumer node: %s", why);
    log_warn("registry", "%s: the consumer node cannot be written (%s); calls go on",
             zr->ref->key_text, why);
}

static void again(struct zk_session *s, struct zk_ref *zr, enum step step, int rc)
{
    if (++zr->tries < TRIES_MAX)
        send_step(s, zr, step, 0);
    else
        fails(zr, rc, zerror(rc));
}

/* ---------------------------------------------------------------- answers */

static void on_acl(struct zk_session *s, struct zk_ref *zr, const struct zk_op *op)
{
    bool of_interface = op->step == STEP_PARENT_ACL;

    if (zk_is_lost(op->rc) || (of_interface && op->rc == ZNONODE)) {
        fails(zr, op->rc, zerror(op->rc));
    } else if (op->rc == ZNONODE) {
        again(s, zr, STEP_PARENT_ACL, op->rc);
    } else {
        zk_acl_inherit(op->rc == ZOK ? &op->acl : NULL, &zr->acl);
        send_step(s, zr, of_interface ? STEP_PARENT : STEP_CREATE, 0);
    }
}

static void on_created(struct zk_session *s, struct zk_ref *zr, const struct zk_op *op)
{
    if (op->rc == ZOK)
        stands(zr);
    else if (op->rc == ZNODEEXISTS)
        send_step(s, zr, STEP_LOOK, 0);
    else if (op->rc == ZNONODE) /* the interface had a provider: only `consumers` is missing */
        again(s, zr, STEP_PARENT, op->rc);
    else
        fails(zr, op->rc, zerror(op->rc));
}

static void on_parent(struct zk_session *s, struct zk_ref *zr, const struct zk_op *op)
{
    if (op->rc == ZOK || op->rc == ZNODEEXISTS)
        send_step(s, zr, STEP_CREATE, 0);
    else /* also when the interface itself is gone: it is not for us to make */
        fails(zr, op->rc, zerror(op->rc));
}

static void on_looked(struct zk_session *s, struct zk_ref *zr, const struct zk_op *op)
{
    if (op->rc == ZNONODE)
        again(s, zr, STEP_CREATE, op->rc); /* its session ended just now */
    else if (op->rc != ZOK)
        fails(zr, op->rc, zerror(op->rc));
    else if (op->stat.ephemeralOwner == s->id)
        stands(zr);
    else if (op->stat.ephemeralOwner == 0)
        fails(zr, ZNODEEXISTS, "a persistent node of that name is in the way");
    else
        send_step(s, zr, STEP_TAKE_OVER, op->stat.version);
}

static void on_taken_over(struct zk_session *s, struct zk_ref *zr, const struct zk_op *op)
{
    if (op->rc == ZOK)
        stands(zr);
    else if (op->rc == ZNONODE || op->rc == ZNODEEXISTS || op->rc == ZBADVERSION)
        again(s, zr, STEP_CREATE, op->rc);
    else
        fails(zr, op->rc, zerror(op->rc));
}

static void on_checked(struct zk_session *s, struct zk_ref *zr, const struct zk_op *op)
{
    zr->due_ms = clock_ms() + CHECK_MS;
    if (op->rc != ZNONODE && (op->rc != ZOK || op->stat.ephemeralOwner == s->id))
        return;
    reference_event(zr->ref, "consumer node was %s", op->rc == ZOK ? "replaced" : "deleted");
    set_node(zr, NODE_QUEUED);
}

static void on_deleted(struct zk_session *s, struct zk_op *op)
{
    if (op->rc != ZOK && op->rc != ZNONODE)
        log_info("registry", "a consumer node could not be deleted (%s); it goes with the session",
                 zerror(op->rc));
}

static void delete_node(struct zk_session *s, const char *path)
{
    struct zk_op *op = zk_op_new(s, NULL, path, on_deleted);

    counter_add(&s->zk->source->home->numbers.deletes, 1);
    zk_op_sent(op, zoo_adelete(s->handle->h, op->path, -1, zk_on_void, op));
}

/* Its reference was evicted while the node was written. */
static void on_orphan(struct zk_session *s, const struct zk_op *op)
{
    if (op->rc == ZOK && (op->step == STEP_CREATE || op->step == STEP_TAKE_OVER) && zk_can_send(s))
        delete_node(s, op->path);
}

static void on_step(struct zk_session *s, struct zk_op *op)
{
    struct reference *ref = cache_find(s->zk->source->home, str_from(op->key));
    struct zk_ref *zr = ref != NULL ? ref->kind_ref : NULL;

    if (zr == NULL || zr->path->session != s) {
        on_orphan(s, op);
        return;
    }
    if (zr->node != (op->step == STEP_CHECK ? NODE_STANDING : NODE_WRITING))
        return;
    switch ((enum step)op->step) {
    case STEP_ACL:
    case STEP_PARENT_ACL:
        on_acl(s, zr, op);
        break;
    case STEP_CREATE:
        on_created(s, zr, op);
        break;
    case STEP_PARENT:
        on_parent(s, zr, op);
        break;
    case STEP_LOOK:
        on_looked(s, zr, op);
        break;
    case STEP_TAKE_OVER:
        on_taken_over(s, zr, op);
        break;
    case STEP_CHECK:
        on_checked(s, zr, op);
        break;
    }
}

/* ---------------------------------------------------------------- questions */

/* What a multi needs until its answer. */
struct take_over {
    zoo_op_t ops[2];
    zoo_op_result_t results[2];
    char created[PATH_MAX_LEN];
};

static int take_over(struct zk_handle *h, struct zk_op *op, int32_t version,
                     const struct ACL_vector *acl)
{
    struct take_over *t = xcalloc(1, sizeof(*t));

    op->memory = t;
    zoo_delete_op_init(&t->ops[0], op->path, version);
    zoo_create_op_init(&t->ops[1], op->path, "", 0, acl, ZOO_EPHEMERAL, t->created,
                       (int)sizeof(t->created));
    return zoo_amulti(h->h, 2, t->ops, t->results, zk_on_void, op);
}

static int send_op(struct zk_handle *h, struct zk_op *op, int32_t version,
                   const struct ACL_vector *acl)
{
    switch ((enum step)op->step) {
    case STEP_ACL:
    case STEP_PARENT_ACL:
        return zoo_aget_acl(h->h, op->path, zk_on_acl, op);
    case STEP_CREATE:
        return zoo_acreate(h->h, op->path, "", 0, acl, ZOO_EPHEMERAL, zk_on_string, op);
    case STEP_PARENT:
        return zoo_acreate(h->h, op->path, "", 0, acl, ZOO_PERSISTENT, zk_on_string, op);
    case STEP_LOOK:
    case STEP_CHECK:
        return zoo_aexists(h->h, op->path, 0, zk_on_stat, op);
    case STEP_TAKE_OVER:
        return take_over(h, op, version, acl);
    }
    return ZBADARGUMENTS;
}

static void send_step(struct zk_session *s, struct zk_ref *zr, enum step step, int32_t version)
{
    struct numbers *n = &s->zk->source->home->numbers;
    char *path = path_of_node(s->zk, zr->ref, step);
    struct zk_op *op = NULL;

    if (path == NULL || !zk_can_send(s)) {
        fails(zr, path == NULL ? ZBADARGUMENTS : ZCONNECTIONLOSS, "its name is too long");
        free(path);
        return;
    }
    if (step != STEP_CHECK)
        set_node(zr, NODE_WRITING);
    if (step == STEP_CREATE || step == STEP_PARENT || step == STEP_TAKE_OVER)
        counter_add(&n->creates, 1);
    if (step == STEP_TAKE_OVER)
        counter_add(&n->deletes, 1);
    op = zk_op_new(s, zr->ref->key_text, path, on_step);
    op->step = (int)step;
    free(path);
    zk_op_sent(op, send_op(s->handle, op, version, zk_acl_of(zr)));
}

/* ---------------------------------------------------------------- pace */

static void refill(struct zk_session *s, uint64_t now)
{
    s->budget += now - s->budget_ms;
    s->budget = s->budget < BURST ? s->budget : BURST;
    s->budget_ms = now;
}

static void write_queued(struct zk_session *s)
{
    enum step first = s->zk->auth.n != 0 ? STEP_ACL : STEP_CREATE;

    while (s->budget != 0 && !list_empty(&s->publish) && zk_can_send(s)) {
        s->budget--;
        send_step(s, container_of(s->publish.next, struct zk_ref, queue), first, 0);
    }
}

static void retry_failed(struct zk_session *s, uint64_t now)
{
    list_each_safe(l, &s->retry) {
        struct zk_ref *zr = container_of(l, struct zk_ref, queue);

        if (now >= zr->due_ms)
            set_node(zr, NODE_QUEUED);
    }
}

static void check_oldest(struct zk_session *s, uint64_t now)
{
    struct zk_ref *zr = NULL;

    if (list_empty(&s->standing) || s->budget == 0)
        return;
    zr = container_of(s->standing.next, struct zk_ref, queue);
    if (now < zr->due_ms)
        return;
    s->budget--;
    zr->due_ms = now + CHECK_MS;
    set_node(zr, NODE_STANDING); /* to the end */
    send_step(s, zr, STEP_CHECK, 0);
}

bool zk_consumer_tick(struct zk_session *s, uint64_t now)
{
    refill(s, now);
    retry_failed(s, now);
    check_oldest(s, now);
    write_queued(s);
    return !list_empty(&s->publish);
}

void zk_publish(void *kind, struct reference *ref)
{
    struct zk_ref *zr = ref->kind_ref;
    const struct zk *z = kind;

    if (zr == NULL || zr->node != NODE_NONE || z->consumer_ip[0] == '\0')
        return;
    set_node(zr, NODE_QUEUED);
    refill(zr->path->session, clock_ms());
    write_queued(zr->path->session);
}

void zk_unpublish(void *kind, struct reference *ref)
{
    struct zk_ref *zr = ref->kind_ref;
    struct zk_session *s = zr != NULL ? zr->path->session : NULL;
    char *path = NULL;

    if (zr == NULL)
        return;
    /* at the end the session takes all its nodes with it */
    if (zr->node == NODE_STANDING && zk_can_send(s) && !s->zk->source->home->stopping)
        path = path_of_node(s->zk, ref, STEP_CREATE);
    set_node(zr, NODE_NONE);
    if (path != NULL)
        delete_node(s, path);
    free(path);
}

void zk_consumer_lost(struct zk_session *s)
{
    list_each(l, &s->paths) {
        list_each(x, &container_of(l, struct zk_path, link)->refs) {
            set_node(container_of(x, struct zk_ref, link), NODE_NONE);
        }
    }
}
