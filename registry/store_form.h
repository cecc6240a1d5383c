/*
 * The form of references.json, shared by its writer (store.c) and its reader (store_read.c).
 *
 * One JSON document, one registry, reference, revision or rule per line, so that both sides need no tree of the whole:
 *
 *   {"format":1,"saved_ms":1796102785675,"registries":[
 *   {"name":"main","max_zxid":4711,"root_czxid":2}
 *   ],"references":[
 *   {"registry":"main","reference":"a.B:1.0@g","czxid":12,"saved_ms":…,"applications":"a,b","providers":["dubbo://…"]},
 *   {…}
 *   ],"revisions":[
 *   {"registry":"main","application":"a","revision":"6c7e…","services":[["a.B","dubbo","a.B",20880,"interface=a.B&…"],…]}
 *   ],"rules":[
 *   {"registry":"main","node":"a.B:1.0:.condition-router","text":"force: true\n…"},
 *   {"registry":"main","node":"a.B/routers","text":"condition://0.0.0.0/a.B?…\n"}
 *   ],"definitions":[
 *   {"registry":"main","reference":"a.B:1.0@g","application":"shop","definition":{"methods":[…],"types":[…]}}
 *   ],
 *   "sum":"0123456789abcdef"}
 *
 * "applications", "consumer_ip" of a registry, the revisions, rules and definitions are there only when there are some.
 * The sum covers every byte before its line.
 */
#pragma once

enum { STORE_FORMAT = 1 };

#define STORE_OPENING     "{\"format\":%d,\"saved_ms\":"
#define STORE_MIDDLE      "],\"references\":["
#define STORE_REVISIONS   "],\"revisions\":["
#define STORE_RULES       "],\"rules\":["
#define STORE_DEFINITIONS "],\"definitions\":["
#define STORE_END         "],"
#define STORE_SUM_FORM    "\"sum\":\"%016llx\"}\n"

enum { STORE_SUM_LINE = 26 };
