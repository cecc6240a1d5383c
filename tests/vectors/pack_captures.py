#!/usr/bin/env python3
"""Packs recorded frames (NAME.req.hex, NAME.rsp.hex and their .json) of one Dubbo version into one file.

usage: pack_captures.py FOLDER OUT.json     (FOLDER/../tools/hs.py is the reader the recordings came with)

What a frame must decode to is worked out here by that independent reader, in the raw mode of the vectors
(class names kept, nothing rebuilt): `values` = the JSON text of each Hessian2 value of the body.
"""
import json, os, sys, datetime

folder, out_path = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(folder, '..', 'tools'))
import hs  # noqa: E402

J8 = 'com.alibaba.com.caucho.hessian.io.java8.'


def date_text(ms):
    s, frac = divmod(int(ms), 1000)
    d = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=s)
    return d.strftime('%Y-%m-%dT%H:%M:%S') + '.%03dZ' % frac


def time_text(o):
    t = '%02d:%02d' % (o['hour'], o['minute'])
    if o['second'] or o['nano']:
        t += ':%02d' % o['second']
    if o['nano']:
        n = '%09d' % o['nano']
        t += '.' + (n[:3] if n.endswith('000000') else n[:6] if n.endswith('000') else n)
    return t


def special(o, open_ids):
    c = o.cls
    if c == 'java.math.BigDecimal':
        return o['value']
    if c == 'java.math.BigInteger':
        n = 0
        for w in o['mag']:
            n = n << 32 | (w & 0xffffffff)
        return str(n * o['signum'])
    if c in ('java.sql.Date', 'java.sql.Time', 'java.sql.Timestamp'):
        return json.dumps(date_text(o['value']))
    if c in ('java.util.concurrent.atomic.AtomicLong', 'java.util.concurrent.atomic.AtomicInteger'):
        return str(int(o['value']))
    if c == 'java.util.concurrent.atomic.AtomicBoolean':
        return 'true' if o['value'] else 'false'
    if c == J8 + 'LocalDateHandle':
        return json.dumps('%04d-%02d-%02d' % (o['year'], o['month'], o['day']))
    if c == J8 + 'LocalTimeHandle':
        return json.dumps(time_text(o))
    if c == J8 + 'LocalDateTimeHandle':
        return json.dumps(json.loads(special(o['date'], ())) + 'T' + time_text(o['time']))
    if c == J8 + 'InstantHandle':
        d = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(o['seconds']))
        n = '%09d' % o['nanos']
        f = '' if not o['nanos'] else '.' + (n[:3] if n.endswith('000000') else n[:6] if n.endswith('000') else n)
        return json.dumps(d.strftime('%Y-%m-%dT%H:%M:%S') + f + 'Z')
    return None


def text(v, open_ids=()):
    if v is None:
        return 'null'
    if v is True or v is False:
        return 'true' if v else 'false'
    if isinstance(v, hs.JDate):
        return json.dumps(date_text(v))
    if isinstance(v, int):
        return str(int(v))
    if isinstance(v, float):
        return json.dumps({'nan': 'NaN', 'inf': 'Infinity', '-inf': '-Infinity'}[repr(v)]) \
            if repr(v) in ('nan', 'inf', '-inf') else repr(v)
    if isinstance(v, str):
        return json.dumps(v.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace'), ensure_ascii=False)
    if isinstance(v, bytes):
        import base64
        return json.dumps(base64.b64encode(v).decode())
    if id(v) in open_ids:
        return 'null'
    inside = open_ids + (id(v),)
    if isinstance(v, list):
        return '[' + ','.join(text(x, inside) for x in v) + ']'
    if isinstance(v, hs.Obj):
        s = special(v, inside)
        if s is not None:
            return s
    pairs = []
    for k, x in v.items():
        key = text(k, inside) if isinstance(k, str) else json.dumps(text(k, inside))
        pairs.append(key + ':' + text(x, inside))
    return '{' + ','.join(pairs) + '}'


def values(body):
    d = hs.Dec(body)
    got = []
    while d.p < len(body):
        got.append(text(d.val()))
    return got


frames = []
for name in sorted(os.listdir(folder)):
    if not name.endswith('.hex'):
        continue
    raw = bytes.fromhex(''.join(open(os.path.join(folder, name)).read().split()))
    meta = json.load(open(os.path.join(folder, name[:-4] + '.json')))
    flag, status = raw[2], raw[3]
    frame = {'name': name[:-4], 'hex': raw.hex(), 'flag': flag, 'status': status,
             'id': str(int.from_bytes(raw[4:12], 'big')), 'body_len': len(raw) - 16}
    event, request, serial = flag & 0x20, flag & 0x80, flag & 0x1f
    body = raw[16:]
    if event:
        frame['event'] = 'readonly' if body[-1:] == b'R' else 'heartbeat'
    elif not request and status != 20 and serial != 2:
        # the text is in the description; JSON there may be shortened
        b = meta.get('body')
        if serial == 6:
            b = {'error_text': json.loads(body)}
        t = b.get('error_text') if isinstance(b, dict) else b
        frame['text_has'] = (t or '').split('\n')[0][:60] if isinstance(t, str) else ''
    elif serial == 2:
        try:
            frame['values'] = values(body)
        except Exception:
            frame['malformed'] = True
    else:
        frame['unsupported'] = True
    frames.append(frame)
with open(out_path, 'w') as f:
    f.write('[\n' + ',\n'.join(json.dumps(x, ensure_ascii=False) for x in frames) + '\n]\n')
print(out_path, len(frames), 'frames', sum('values' in x for x in frames), 'decoded',
      [x['name'] for x in frames if x.get('malformed') or x.get('unsupported')])
