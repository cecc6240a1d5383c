#include <stdlib.h>

#include "base/fatal.h"
#include "gateway/control.h"

/*
 * One question to all workers.  A worker that is stuck keeps its job; the question is answered without it
 * after GATHER_MS and freed when the last job has come back, however late.
 */
enum { GATHER_MS = 500 };

struct gather {
    struct control *control;
    struct gather_spec spec;
    ev_timer timer;
    unsigned n;
    unsigned outstanding;
    bool answered;
    struct gather_job {
        struct job job; /* first member */
        struct gather *home;
        void *part;
        bool back;
    } jobs[];
};

static void free_gather(struct gather *g)
{
    for (unsigned i = 0; i < g->n; i++)
        g->spec.release(g->jobs[i].part);
    ev_timer_stop(g->control->loop, &g->timer);
    free(g);
}

static void answer(struct gather *g)
{
    void **parts = xcalloc(g->n + 1, sizeof(*parts));

    for (unsigned i = 0; i < g->n; i++)
        parts[i] = g->jobs[i].back ? g->jobs[i].part : NULL;
    g->answered = true;
    ev_timer_stop(g->control->loop, &g->timer);
    g->spec.done(g->control, parts, g->n, g->spec.ctx);
    free(parts);
}

static void run_job(struct worker *w, struct job *j)
{
    struct gather_job *gj = container_of(j, struct gather_job, job);

    gj->home->spec.run(w, gj->part);
}

static void on_timeout(struct ev_loop *loop, ev_timer *t, int events)
{
    answer(container_of(t, struct gather, timer));
}

void gather_job_back(struct job *j)
{
    struct gather_job *gj = container_of(j, struct gather_job, job);
    struct gather *g = gj->home;

    gj->back = true;
    g->outstanding--;
    if (g->outstanding == 0 && !g->answered)
        answer(g);
    if (g->outstanding == 0)
        free_gather(g);
}

void control_gather(struct control *c, const struct gather_spec *spec)
{
    struct gather *g = xcalloc(1, sizeof(*g) + c->n_workers * sizeof(g->jobs[0]));

    g->control = c;
    g->spec = *spec;
    g->n = g->outstanding = c->n_workers;
    ev_timer_init(&g->timer, on_timeout, GATHER_MS / 1000., 0.);
    ev_timer_start(c->loop, &g->timer);
    for (unsigned i = 0; i < g->n; i++) {
        struct gather_job *gj = &g->jobs[i];

        gj->home = g;
        gj->part = spec->make(c);
        gj->job.run = run_job;
        gj->job.reply_to = &c->box.box;
        worker_post(&c->workers[i], &gj->job);
    }
}
