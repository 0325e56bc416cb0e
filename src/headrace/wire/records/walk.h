/* `are_sound_plainly` of walk.py, compiled: the same question, the same answer. A test holds the two equal. */
#ifndef HEADRACE_WALK_H
#define HEADRACE_WALK_H

#include "numbers.h"

#define RECORD_SIZE_MIN 6 /* without its length: six fields of a byte each */

/* A length and as many bytes, none where it is negative; *at moves behind them. */
static inline int skip_bytes(const uint8_t *plain, int64_t *at, int64_t end)
{
    int64_t size;
    if (!read_short_number(plain, at, end, &size) || size > end - *at)
        return 0;
    if (size > 0)
        *at += size;
    return 1;
}

static inline int skip_headers(const uint8_t *plain, int64_t *at, int64_t end, int64_t count)
{
    if (count < 0 || count > (end - *at) / 2)
        return 0;
    for (; count > 0; count--) {
        int64_t size, begin = *at;
        if (!read_short_number(plain, at, end, &size) || size < 0)
            return 0;
        *at = begin;
        if (!skip_bytes(plain, at, end) || !skip_bytes(plain, at, end))
            return 0;
    }
    return 1;
}

/* Whether the bytes are exactly `count` records whose offsets follow each other. */
static int records_are_sound(const uint8_t *plain, int64_t size, int64_t count, int64_t base_timestamp)
{
    int64_t at = 0;
    for (int64_t place = 0; place < count; place++) {
        int64_t record_size, later, delta, headers, timestamp;
        if (!read_short_number(plain, &at, size, &record_size) || record_size < RECORD_SIZE_MIN
            || record_size > size - at)
            return 0;
        int64_t end = at + record_size;
        at += 1; /* attributes */
        if (!read_number(plain, &at, end, &later) || __builtin_add_overflow(base_timestamp, later, &timestamp)
            || !read_short_number(plain, &at, end, &delta) || delta != place || !skip_bytes(plain, &at, end)
            || !skip_bytes(plain, &at, end) || !read_short_number(plain, &at, end, &headers)
            || (headers && !skip_headers(plain, &at, end, headers)) || at != end)
            return 0;
    }
    return at == size;
}

#endif
