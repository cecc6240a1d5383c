#include <sys/socket.h>

#include "base/fatal.h"
#include "gateway/exchange.h"
#include "gateway/exchange_parts.h"

static void on_body_sent(void *cls)
{
    out_buf_put(cls);
}

static struct MHD_Response *make_response(struct out_buf *body)
{
    if (body == NULL)
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    return MHD_create_response_from_buffer_with_free_callback_cls(body->buf.len, body->buf.data,
                                                                  &on_body_sent, body);
}

static bool must_close(const struct exchange *x)
{
    const struct exchanges *h = x->client->home;

    return x->close || h->draining ||
           (h->limits.keepalive_requests != 0 &&
            x->client->requests >= h->limits.keepalive_requests);
}

static void add_header(struct MHD_Response *response, struct exchange *x, struct str name,
                       struct str value)
{
    /* names and values come from the table of our answers, which ends them with NUL; a value that the
     * library refuses (control bytes) is left out */
    if (MHD_add_response_header(response, name.p, value.p) != MHD_YES)
        x->client->home->activity++;
}

static void suspend(struct exchange *x)
{
    x->wait = WAIT_SUSPENDED;
    x->client->home->n_suspended++;
    MHD_suspend_connection(x->client->mhd);
}

/* Once per turn, from the library's callback for a ready connection. */
void exchange_linger(struct exchange *x)
{
    if (++x->turns < LINGER_TURNS)
        return;
    linger_in_vain(&x->client->home->linger);
    suspend(x);
}

static void end_wait(struct exchange *x)
{
    struct exchanges *h = x->client->home;

    if (x->wait == WAIT_NONE)
        return;
    if (x->wait == WAIT_LINGERING)
        linger_answered(&h->linger);
    else
        h->n_suspended--;
    x->wait = WAIT_NONE;
    h->need_run = true;
}

/* The library goes on with the connection in here: when its own timeout has passed meanwhile (the process was
 * stopped), it ends the exchange.  So everything is settled before, and only a refusal leaves `x` for sure. */
static bool queue(struct exchange *x, unsigned status, struct MHD_Response *response)
{
    struct MHD_Connection *mhd = x->client->mhd;
    bool suspended = x->wait == WAIT_SUSPENDED;
    bool queued = false;

    x->answered = true;
    x->status = (uint16_t)status;
    client_enter(x->client, PHASE_WRITE);
    end_wait(x);
    queued = response != NULL && MHD_queue_response(mhd, status, response) == MHD_YES;
    if (!queued) {
        x->status = 0;
        shutdown(x->client->fd, SHUT_RDWR);
    }
    if (suspended)
        MHD_resume_connection(mhd);
    return queued;
}

bool exchange_answer(struct exchange *x, unsigned status, const struct header *headers,
                     size_t n_headers, struct out_buf *body)
{
    struct MHD_Response *response = make_response(body);
    bool queued = false;

    ASSERT(!x->answered);

    if (response == NULL && body != NULL)
        out_buf_put(body);
    if (response != NULL) {
        x->bytes_out = body != NULL ? body->buf.len : 0;
        for (size_t i = 0; i < n_headers; i++)
            add_header(response, x, headers[i].name, headers[i].value);
        if (must_close(x))
            add_header(response, x, STR("Connection"), STR("close"));
    }
    queued = queue(x, status, response);
    if (response != NULL)
        MHD_destroy_response(response);
    return queued;
}

void exchange_wait(struct exchange *x)
{
    struct exchanges *h = x->client->home;

    ASSERT(x->wait == WAIT_NONE && !x->answered);

    client_enter(x->client, PHASE_CALL);
    x->turns = 0;
    if (linger_begin(&h->linger, h->n_phase[PHASE_CALL]))
        x->wait = WAIT_LINGERING;
    else
        suspend(x);
}
