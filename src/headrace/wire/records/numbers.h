/* The variable-length numbers of records, for every helper that reads them. No byte at or behind `end` is read. */
#ifndef HEADRACE_NUMBERS_H
#define HEADRACE_NUMBERS_H

#include <stdint.h>

/* The zigzag number at *at, which moves behind it; 0 if it is cut off or longer than 64 bits. */
static inline int read_number(const uint8_t *plain, int64_t *at, int64_t end, int64_t *number)
{
    int64_t place = *at;
    uint64_t value = 0;
    for (int shift = 0; shift <= 63; shift += 7) {
        if (place >= end)
            return 0;
        uint8_t byte = plain[place++];
        if (shift == 63 && byte > 1)
            return 0;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *at = place;
            *number = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
            return 1;
        }
    }
    return 0;
}

/* The same for a number of at most 32 bits, in at most the five bytes that it needs. */
static inline int read_short_number(const uint8_t *plain, int64_t *at, int64_t end, int64_t *number)
{
    int64_t begin = *at;
    if (begin < end && plain[begin] < 0x80) { /* as most numbers are */
        uint8_t byte = plain[begin];
        *number = (byte >> 1) ^ -(int64_t)(byte & 1);
        *at = begin + 1;
        return 1;
    }
    return read_number(plain, at, end, number) && *at - begin <= 5 && *number >= INT32_MIN && *number <= INT32_MAX;
}

#endif
