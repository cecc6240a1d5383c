/*
 * The bundled sample provider: speaks the Dubbo protocol, exports demo.UserService and an echo service,
 * and does on command everything that a provider can do wrong.  One thread, for demo, end-to-end tests
 * and benchmarks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>
#include <jansson.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/str.h"
#include "codec/frame.h"

struct stub;

/* A decoded generic request; texts and slices live until the next one. */
struct stub_call {
    uint64_t id;
    bool one_way;
    struct str interface;
    struct str version;
    struct str method;       /* of $invoke's first argument, or the frame's own */
    const uint8_t *args[32]; /* encoded values */
    size_t arg_len[32];
    size_t n_args;
    const uint8_t *attachments;
    size_t attachments_len;
};

struct stub_conn {
    struct list link;
    struct stub *stub;
    int fd;
    ev_io io;
    struct buf in;
    struct buf out;
    bool closing; /* after what is in `out` */
    bool deaf;    /* reads no more */
    bool slow;    /* a split answer waits: nothing else may be sent before it */
};

struct stub {
    struct ev_loop *loop;
    const char *name; /* tells several apart: answers of whoami */
    struct list conns;
    unsigned n_conns;
    uint64_t connects;
    uint64_t calls;
    uint64_t heartbeats;
    uint64_t one_ways;
    size_t canned; /* > 0: every call gets the same map of about so many bytes */
    struct buf canned_body;
    double delay_s; /* for canned answers */
    json_t *script; /* {"METHOD": [[action, …], …]} or NULL */
    json_t *counts; /* {"METHOD": calls so far} */
    struct buf scratch;
    struct buf body;
};

bool stub_decode(const uint8_t *body, size_t n, struct stub_call *c, struct buf *texts);
/* Appends a frame with this body. */
void stub_frame(struct stub_conn *k, uint8_t flags, uint8_t status, uint64_t id, struct str body);
void stub_flush(struct stub_conn *k);
void stub_close(struct stub_conn *k, bool reset);

/* Runs the actions of the script for this call; false when it has none. */
bool script_run(struct stub_conn *k, const struct stub_call *c);
/* Builds the body of a status 20 answer into `out`; false when there is no such method. */
bool service_answer(struct stub *s, const struct stub_call *c, struct buf *out, double *delay_s);
/* Answers later; the connection may be gone by then. */
void stub_answer_later(struct stub_conn *k, double after_s, uint8_t flags, uint8_t status,
                       uint64_t id, struct str body);

void put_exception(struct buf *out, const char *class, const char *message);
void put_attachments_end(struct buf *out, const json_t *more);
/* "org.apache.dubbo…": text of a status 70 answer */
void put_status_text(struct buf *out, struct str text);

/* The control page: GET / = {"calls":N,…}; POST /script with JSON; POST /reset. */
bool control_listen(struct stub *s, int port);
