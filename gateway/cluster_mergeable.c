/*
 * One provider of every group, at once; their results are put together.  The reference of a service with group "*" or a
 * list has the providers of all its groups, each with its own, so no further subscription is needed.  A group that fails,
 * or that is listed and has no provider, fails the request: half of a result would look like a whole one.
 */
#include <stdlib.h>

#include "gateway/cluster_run.h"
#include "gateway/merge.h"

static bool add_group(struct str *groups, size_t *n, struct str group)
{
    for (size_t i = 0; i < *n; i++) {
        if (str_eq(groups[i], group))
            return true;
    }
    if (*n == CLUSTER_CALLS_MAX)
        return false;
    groups[(*n)++] = group.n != 0 ? group : STR(""); /* p != NULL: a wish */
    return true;
}

static int by_text(const void *a, const void *b)
{
    const struct str *x = a;
    const struct str *y = b;

    return str_cmp(*x, *y);
}

/* Of a list in its order, of "*" by name.  False: too many. */
static bool find_groups(const struct ref *ref, struct str *groups, size_t *n)
{
    struct str list = ref->key.group;

    *n = 0;
    if (!str_is(list, "*")) {
        while (list.n != 0) {
            if (!add_group(groups, n, str_trim(str_cut(list, ',', &list))))
                return false;
        }
        return true;
    }
    for (size_t i = 0; i < ref->n_usable; i++) {
        if (!add_group(groups, n, ref->usable[i]->provider->group))
            return false;
    }
    qsort(groups, *n, sizeof(*groups), by_text);
    return true;
}

static void begin(struct cluster_run *r)
{
    struct call_plan p = r->front->plan;
    struct str groups[CLUSTER_CALLS_MAX];
    size_t n = 0;

    if (!find_groups(p.ref, groups, &n)) {
        problem_set(&r->problem, OUTCOME_INTERNAL, "more than %d groups", CLUSTER_CALLS_MAX);
        cluster_fail(r);
        return;
    }
    r->n_planned = n != 0 ? (unsigned)n : 1;
    for (unsigned i = 0; i < r->n_planned && !r->over; i++) {
        /* its text is the directory's or the reference's: a new list must not take it away */
        p.wish.group = n != 0 ? arena_str(&r->arena, groups[i]) : STR_NONE;
        cluster_call(r, i, &p);
    }
}

static void merge(struct cluster_run *r)
{
    struct cluster_child *m = &r->merged;
    struct str texts[CLUSTER_CALLS_MAX];
    struct buf of_first = r->children[0].attachments;

    m->json.limit = r->front->json->limit;
    m->kind = REPLY_VALUE;
    m->cycles = 0;
    for (unsigned i = 0; i < r->n_planned; i++) {
        const struct cluster_child *c = &r->children[i];

        texts[i] = c->kind == REPLY_NULL ? STR_NONE : buf_str(&c->json);
        m->cycles += c->cycles;
    }
    r->children[0].attachments = m->attachments;
    m->attachments = of_first;
    __builtin_memcpy(m->provider, r->children[0].provider, sizeof(m->provider));
    switch (merge_json(texts, r->n_planned, &r->arena, &m->json)) {
    case MERGE_MISMATCH:
        problem_set(&r->problem, OUTCOME_BAD_PROVIDER_RESPONSE,
                    "the results of the groups are neither all lists nor all objects");
        cluster_fail(r);
        return;
    case MERGE_NULL:
        m->kind = REPLY_NULL;
        break;
    case MERGE_OK:
        break;
    }
    if (!m->json.failed) {
        cluster_answer(r, m);
        return;
    }
    problem_set(&r->problem, OUTCOME_RESPONSE_TOO_LARGE, "the merged answer is too large");
    cluster_fail(r);
}

static void ended(struct cluster_run *r, struct cluster_child *c)
{
    /* of "*", a group that rules take out is not there */
    bool absent = str_is(r->front->plan.ref->key.group, "*") && cluster_ruled_out(r, c);

    if (absent)
        c->kind = REPLY_NULL;
    if (c->outcome != OUTCOME_OK && (!absent || r->n_ruled_out == r->n_planned))
        cluster_fail(r);
    else if (r->n_open == 0 && r->n_begun == r->n_planned)
        merge(r);
}

const struct cluster cluster_mergeable = {
    .name = "mergeable", .begin = begin, .ended = ended, .groups_only = true, .not_oneway = true};
