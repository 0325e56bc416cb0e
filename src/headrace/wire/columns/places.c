/* Where each field of each record of a group is: the loop of places.py, compiled.

   Built where a C compiler is (tools/build_native.py); tests hold it equal to the numpy path. No byte is read that is not before the end
   of its record, and a record ends within its batch. Every function returns a count, or REFUSED. */

#include "../records/numbers.h"

#define REFUSED (-1)
#define ROW_NUMBERS 7
#define PLACE_COLUMNS 10
#define HEADER_NUMBERS 4
#define RECORD_SIZE_MIN 6

/* A number that says how many bytes follow, and those bytes: *begin and *size; *at moves behind them. */
static inline int read_bytes(const uint8_t *plain, int64_t *at, int64_t end, int64_t *begin, int64_t *size)
{
    if (!read_number(plain, at, end, size) || *size > end - *at)
        return 0;
    *begin = *at;
    if (*size > 0)
        *at += *size;
    return 1;
}

/* `rows` has ROW_NUMBERS per batch: begin, end, count, base offset, last delta, base timestamp, is log time.
   `places` has PLACE_COLUMNS arrays of `capacity` numbers. The caller made sure that the counts add up to `capacity`
   and that every begin and end is within the buffer. */
int64_t headrace_find_places(const uint8_t *plain, const int64_t *rows, int64_t batch_count, int64_t *places,
                             int64_t capacity)
{
    int64_t *column[PLACE_COLUMNS];
    for (int i = 0; i < PLACE_COLUMNS; i++)
        column[i] = places + i * capacity;
    int64_t found = 0;
    for (int64_t batch = 0; batch < batch_count; batch++) {
        const int64_t *row = rows + batch * ROW_NUMBERS;
        int64_t at = row[0], batch_end = row[1], base_timestamp = row[5], is_log_time = row[6];
        for (int64_t left = row[2]; left > 0; left--) {
            int64_t size, later, delta, key_at, key_size, value_at, value_size, header_count, timestamp;
            if (found >= capacity || !read_number(plain, &at, batch_end, &size))
                return REFUSED;
            if (size < RECORD_SIZE_MIN || size > batch_end - at)
                return REFUSED;
            int64_t end = at + size;
            at += 1; /* attributes */
            if (!read_number(plain, &at, end, &later) || !read_number(plain, &at, end, &delta) || delta < 0
                || delta > row[4] || !read_bytes(plain, &at, end, &key_at, &key_size)
                || !read_bytes(plain, &at, end, &value_at, &value_size) || !read_number(plain, &at, end, &header_count)
                || header_count < 0 || header_count > (end - at) / 2 || (header_count == 0 && at != end))
                return REFUSED;
            if (is_log_time)
                timestamp = base_timestamp;
            else if (__builtin_add_overflow(base_timestamp, later, &timestamp))
                return REFUSED;
            column[0][found] = row[3] + delta;
            column[1][found] = timestamp;
            column[2][found] = is_log_time;
            column[3][found] = key_at;
            column[4][found] = key_size;
            column[5][found] = value_at;
            column[6][found] = value_size;
            column[7][found] = at;
            column[8][found] = header_count;
            column[9][found] = end;
            found += 1;
            at = end;
        }
        if (at != batch_end)
            return REFUSED;
    }
    return found;
}

/* `headers` has HEADER_NUMBERS for each of `capacity` headers: where the key is, its size, where the value is, its size.
   The caller took the places and counts from the function above. */
int64_t headrace_find_headers(const uint8_t *plain, const int64_t *headers_at, const int64_t *counts,
                              const int64_t *ends, int64_t record_count, int64_t *headers, int64_t capacity)
{
    int64_t found = 0;
    for (int64_t record = 0; record < record_count; record++) {
        int64_t at = headers_at[record], end = ends[record];
        if (counts[record] == 0)
            continue;
        for (int64_t left = counts[record]; left > 0; left--) {
            if (found >= capacity)
                return REFUSED;
            int64_t *header = headers + found * HEADER_NUMBERS;
            if (!read_bytes(plain, &at, end, &header[0], &header[1]) || header[1] < 0
                || !read_bytes(plain, &at, end, &header[2], &header[3]))
                return REFUSED;
            if (header[3] < 0)
                header[3] = -1;
            found += 1;
        }
        if (at != end)
            return REFUSED;
    }
    return found;
}
