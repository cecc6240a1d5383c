/*
 * The form of references.json, shared by its writer (store.c) and its reader (store_read.c).
 *
 * One JSON document, one registry or reference per line, so that both sides need no tree of the whole:
 *
 *   {"format":1,"saved_ms":1796102785675,"registries":[
 *   {"name":"main","max_zxid":4711,"root_czxid":2}
 *   ],"references":[
 *   {"registry":"main","reference":"a.B:1.0@g","czxid":12,"saved_ms":…,"providers":["dubbo://…"]},
 *   {…}
 *   ],
 *   "sum":"0123456789abcdef"}
 *
 * The sum covers every byte before its line.
 */
#pragma once

enum { STORE_FORMAT = 1 };

#define STORE_OPENING  "{\"format\":%d,\"saved_ms\":"
#define STORE_MIDDLE   "],\"references\":["
#define STORE_END      "],"
#define STORE_SUM_FORM "\"sum\":\"%016llx\"}\n"

enum { STORE_SUM_LINE = 26 };
