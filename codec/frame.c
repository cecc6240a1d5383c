#include "codec/frame.h"

enum { MAGIC_0 = 0xda, MAGIC_1 = 0xbb };

void frame_encode(const struct frame *f, struct buf *out)
{
    const uint8_t head[4] = {MAGIC_0, MAGIC_1, f->flags, f->status};

    buf_add(out, head, sizeof(head));
    buf_add_be64(out, f->id);
    buf_add_be32(out, f->body_len);
}

enum frame_result frame_decode(const uint8_t *p, size_t n, uint32_t max_body, struct frame *f)
{
    /* An HTTP or telnet peer is told from a slow Dubbo peer by the first byte already. */
    if ((n > 0 && p[0] != MAGIC_0) || (n > 1 && p[1] != MAGIC_1))
        return FRAME_MALFORMED;
    if (n < FRAME_HEADER_LEN)
        return FRAME_MORE;

    f->flags = p[2];
    f->status = p[3];
    f->id = (uint64_t)get_be32(p + 4) << 32 | get_be32(p + 8);
    f->body_len = get_be32(p + 12);

    return f->body_len <= max_body ? FRAME_OK : FRAME_MALFORMED;
}
