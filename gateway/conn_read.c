#include "base/clock.h"
#include "codec/reply.h"
#include "gateway/conn_parts.h"

enum {
    IN_KEEP = 65536, /* larger buffers go back to malloc when idle */
    STATUS_OK = 20,
};

static void on_event(struct conn *c, const struct frame *f, const uint8_t *body)
{
    struct str text = {(const char *)body, f->body_len};

    if ((f->flags & FRAME_REQUEST) == 0)
        return; /* answer to a heartbeat of ours: that a byte came is all that counts */
    switch (reply_event_decode(f, body)) {
    case EVENT_READONLY:
        counter_add(&c->w->stats.readonly_events, 1);
        c->readonly = true;
        if (c->state == CONN_READY)
            conn_enter(c, CONN_DRAINING);
        conn_mark_dirty(c);
        return;
    case EVENT_HEARTBEAT:
        if (f->flags & FRAME_TWO_WAY)
            conn_send_event(c, (uint8_t)(FRAME_EVENT | (f->flags & FRAME_SERIAL_MASK)), STATUS_OK,
                            f->id, text);
        return;
    case EVENT_UNKNOWN:
        counter_add(&c->w->stats.protocol_errors, 1);
        return;
    }
}

/* `body` NULL: it was too long and is being skipped. */
static void on_frame(struct conn *c, const struct frame *head, const uint8_t *body)
{
    struct flight *f = NULL;

    counter_add(&c->w->stats.frames_in, 1);
    if (head->flags & FRAME_EVENT) {
        if (body != NULL)
            on_event(c, head, body);
        return;
    }
    if (head->flags & FRAME_REQUEST) { /* providers call nobody */
        counter_add(&c->w->stats.protocol_errors, 1);
        return;
    }
    f = flights_find(&c->flights, head->id);
    if (f == NULL) {
        counter_add(&c->w->stats.late_responses, 1);
        return;
    }
    conn_end_flight(c, f);
    f->on_reply(f, head, body);
}

/* Takes whole frames from p; returns the bytes used, or n + 1 when the connection had to be closed. */
static size_t take_frames(struct conn *c, const uint8_t *p, size_t n)
{
    size_t at = 0;

    for (;;) {
        struct frame head;
        size_t left = n - at;

        if (c->skip != 0) {
            size_t gone = c->skip < left ? c->skip : left;

            c->skip -= gone;
            at += gone;
            if (c->skip != 0)
                return at;
            continue;
        }
        switch (frame_decode(p + at, left, CONN_BODY_MAX, &head)) {
        case FRAME_MORE:
            return at;
        case FRAME_MALFORMED:
            counter_add(&c->w->stats.protocol_errors, 1);
            conn_close(c);
            return n + 1;
        case FRAME_OK:
            break;
        }
        if (head.body_len > c->opts.max_response) {
            at += FRAME_HEADER_LEN;
            c->skip = head.body_len;
            on_frame(c, &head, NULL);
        } else if (left - FRAME_HEADER_LEN < head.body_len) {
            return at;
        } else {
            on_frame(c, &head, p + at + FRAME_HEADER_LEN);
            at += FRAME_HEADER_LEN + head.body_len;
        }
        if (c->state == CONN_CLOSED)
            return n + 1;
    }
}

/* Usually frames are whole and are read in place; only a cut one is copied. */
void conn_take_bytes(struct conn *c, const uint8_t *p, size_t n)
{
    size_t used = 0;

    c->timeouts_in_a_row = 0;
    c->probe_until_ms = 0;
    if (c->in.len == 0) {
        used = take_frames(c, p, n);
        if (used < n)
            buf_add(&c->in, p + used, n - used);
    } else {
        buf_add(&c->in, p, n);
        used = c->in.failed ? c->in.len + 1 : take_frames(c, c->in.data, c->in.len);
        if (used <= c->in.len)
            buf_consume(&c->in, used);
    }
    if (c->in.failed && c->state != CONN_CLOSED)
        conn_close(c);
    if (c->in.len == 0)
        buf_shrink(&c->in, IN_KEEP);
}
