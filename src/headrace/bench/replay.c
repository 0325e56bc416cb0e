/* The replay client of `headrace bench`: sends requests that were encoded in advance and counts the responses.
 *
 *   replay exchange  pipelines one frame per connection repeatedly; the correlation id, the base sequence and the
 *                    checksum of a Produce request are updated each time, so the figure includes idempotence
 *   replay fetch     reads a range of offsets per connection and checks every batch
 *   replay roundtrip parks a fetch, then produces, and measures the time until the fetch returns
 *
 * Arguments are name=value; headrace/bench/replay.py has the same list. One line of JSON on stdout is the result.
 * Responses with an error, out of order or with a wrong checksum are counted, and the caller discards the run.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    HEAD_BYTES = 512,            /* kept of every response; they contain the errors */
    RECEIVE_BYTES = 1 << 18,
    EVENTS_MAX = 256,
    BUCKETS = 1920,              /* 32 per doubling of nanoseconds */
    CORRELATION_AT = 8,          /* in a request frame: after size, api key and version */
    CRC_AT = 17,                 /* in a record batch */
    CRC_COVERS_FROM = 21,
    LAST_OFFSET_DELTA_AT = 23,
    SEQUENCE_AT = 53,
    RECORD_COUNT_AT = 57,
    BATCH_HEADER_BYTES = 61,
    BATCH_LENGTH_COUNTS_FROM = 12,
    DRAIN_SECONDS_MAX = 30,
};

/* --- arguments ---------------------------------------------------------------------------------------------------- */

static int argument_count;
static char **arguments;

static void fail(const char *what) {
    fprintf(stderr, "replay: %s: %s\n", what, errno ? strerror(errno) : "unexpected");
    exit(1);
}

static const char *text_argument(const char *name, const char *otherwise) {
    size_t length = strlen(name);
    for (int i = 2; i < argument_count; i++)
        if (!strncmp(arguments[i], name, length) && arguments[i][length] == '=') return arguments[i] + length + 1;
    return otherwise;
}

static long long argument(const char *name, long long otherwise) {
    const char *text = text_argument(name, NULL);
    return text ? atoll(text) : otherwise;
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static uint32_t get32(const uint8_t *at) { uint32_t v; memcpy(&v, at, 4); return ntohl(v); }
static void put32(uint8_t *at, uint32_t value) { value = htonl(value); memcpy(at, &value, 4); }
static uint64_t get64(const uint8_t *at) { return (uint64_t)get32(at) << 32 | get32(at + 4); }
static void put64(uint8_t *at, uint64_t value) { put32(at, (uint32_t)(value >> 32)); put32(at + 4, (uint32_t)value); }
static int get16(const uint8_t *at) { return (int16_t)(at[0] << 8 | at[1]); }

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- CRC-32C ------------------------------------------------------------------------------------------------------ */

static uint32_t crc_table[256];

static void fill_crc_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0);
        crc_table[i] = value;
    }
}

static uint32_t crc_plain(uint32_t state, const uint8_t *bytes, size_t count) {
    while (count--) state = state >> 8 ^ crc_table[(state ^ *bytes++) & 255];
    return state;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_fast(uint32_t state, const uint8_t *bytes, size_t count) {
    uint64_t wide = state, word;
    for (; count >= 8; count -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    return crc_plain((uint32_t)wide, bytes, count);
}
#endif

static uint32_t (*crc_state)(uint32_t, const uint8_t *, size_t) = crc_plain;

static void choose_crc(void) {
    fill_crc_table();
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.2")) crc_state = crc_fast;
#endif
}

static uint32_t crc32c(const uint8_t *bytes, size_t count) { return ~crc_state(~0u, bytes, count); }

/* The effect of each byte of the base sequence on the checksum. CRCs are linear, so the checksum of a batch is not
 * computed again: for a large batch that would cost the client more than the broker. */
static uint32_t sequence_effect[4][256];

static void fill_sequence_effects(size_t batch_bytes) {
    size_t behind = batch_bytes - SEQUENCE_AT;
    uint8_t *zeros = calloc(1, behind);
    for (int place = 0; place < 4; place++)
        for (int bit = 0; bit < 8; bit++) {
            zeros[place] = (uint8_t)(1 << bit);
            uint32_t effect = crc_state(0, zeros + place, behind - (size_t)place);
            zeros[place] = 0;
            for (int value = 0; value < 256; value++)
                if (value >> bit & 1) sequence_effect[place][value] ^= effect;
        }
    free(zeros);
}

/* --- latencies ---------------------------------------------------------------------------------------------------- */

static uint64_t histogram[BUCKETS];

static void note_latency(uint64_t ns) {
    int shift = ns < 64 ? 0 : 58 - __builtin_clzll(ns);
    histogram[(shift << 5) + (int)(ns >> shift)]++;
}

static void print_result(long long requests, long long errors, int first_error, double seconds, long long bytes,
                         long long records) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("{\"requests\": %lld, \"errors\": %lld, \"first_error\": %d, \"seconds\": %.6f, \"bytes\": %lld, "
           "\"records\": %lld, \"client_cpu_seconds\": %.3f, \"histogram\": {",
           requests, errors, first_error, seconds, bytes, records, cpu);
    const char *comma = "";
    for (int i = 0; i < BUCKETS; i++)
        if (histogram[i]) {
            printf("%s\"%d\": %llu", comma, i, (unsigned long long)histogram[i]);
            comma = ", ";
        }
    printf("}}\n");
}

/* --- connections -------------------------------------------------------------------------------------------------- */

static int connect_one(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)argument("port", 9092))};
    if (inet_pton(AF_INET, text_argument("address", "127.0.0.1"), &to.sin_addr) != 1) fail("address");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to)) fail("connect");
    /* Without responses, small frames are collected in the socket; sent singly they would overload the receiver. */
    if (argument("answers", 1)) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static uint8_t *read_frames(size_t wanted, size_t skipped) {
    FILE *file = fopen(text_argument("file", ""), "rb");
    if (!file || fseek(file, (long)skipped, SEEK_SET)) fail("file");
    uint8_t *bytes = malloc(wanted);
    if (!bytes || fread(bytes, 1, wanted, file) != wanted) fail("file is too short");
    fclose(file);
    return bytes;
}

/* --- exchange ----------------------------------------------------------------------------------------------------- */

struct exchange {
    int fd;
    uint8_t *frame;
    size_t sent;                 /* of the frame that is being sent */
    long long outstanding, begun, answered;
    uint64_t *begun_at;          /* a ring of `depth` times */
    uint64_t due_at;
    size_t have, size;           /* of the response that is being received */
    uint8_t head[HEAD_BYTES];
};

static struct {
    size_t frame_bytes, batch_at, error_at;
    int connections, depth, answers, first_error;
    uint32_t records;
    uint64_t interval_ns, end_at;
    long long requests_max, begun, answered, answer_bytes, errors;
} run;

static void note_error(int code) {
    if (!run.errors++) run.first_error = code;
}

static void renew_frame(struct exchange *c) {
    put32(c->frame + CORRELATION_AT, (uint32_t)c->begun);
    if (!run.batch_at) return;
    uint8_t *batch = c->frame + run.batch_at, *sequence = batch + SEQUENCE_AT, before[4];
    memcpy(before, sequence, 4);
    put32(sequence, (uint32_t)((uint64_t)c->begun * run.records & 0x7FFFFFFFu));
    uint32_t crc = get32(batch + CRC_AT);
    for (int place = 0; place < 4; place++) crc ^= sequence_effect[place][before[place] ^ sequence[place]];
    put32(batch + CRC_AT, crc);
}

/* At least once, so that a short round on a stalled machine has a figure too. */
static int may_begin(struct exchange *c, uint64_t now) {
    if (run.answers && c->outstanding >= run.depth) return 0;
    if (run.requests_max && run.begun >= run.requests_max) return 0;
    return (now < run.end_at || !c->begun) && (!run.interval_ns || now >= c->due_at);
}

static void send_more(struct exchange *c) {
    for (;;) {
        if (!c->sent) {
            uint64_t now = now_ns();
            if (!may_begin(c, now)) return;
            renew_frame(c);
            c->begun_at[c->begun % run.depth] = run.interval_ns ? c->due_at : now;
            c->due_at += run.interval_ns;
            c->begun++, c->outstanding++, run.begun++;
        }
        ssize_t count = send(c->fd, c->frame + c->sent, run.frame_bytes - c->sent, MSG_NOSIGNAL);
        if (count < 0) {
            if (errno == EAGAIN || errno == EINTR) return;
            fail("the broker closed a connection while a request was sent");
        }
        c->sent += (size_t)count;
        if (c->sent == run.frame_bytes) c->sent = 0;
    }
}

static void take_answer(struct exchange *c) {
    note_latency(now_ns() - c->begun_at[c->answered % run.depth]);
    if (get32(c->head + 4) != (uint32_t)c->answered) note_error(-2);
    if (run.error_at && (c->size < run.error_at + 2 || get16(c->head + run.error_at)))
        note_error(c->size < run.error_at + 2 ? -3 : get16(c->head + run.error_at));
    c->answered++, c->outstanding--, run.answered++;
    run.answer_bytes += (long long)c->size;
}

static void take_bytes(struct exchange *c, const uint8_t *bytes, size_t count) {
    while (count) {
        size_t wanted = (c->have < 4 ? 4 : c->size) - c->have, part = count < wanted ? count : wanted;
        if (c->have < HEAD_BYTES) {
            size_t room = HEAD_BYTES - c->have;
            memcpy(c->head + c->have, bytes, part < room ? part : room);
        }
        c->have += part, bytes += part, count -= part;
        if (c->have == 4) c->size = 4 + (size_t)get32(c->head);
        if (c->have >= 4 && c->have == c->size) {
            take_answer(c);
            c->have = c->size = 0;
        }
    }
}

static void receive_all(struct exchange *c) {
    static uint8_t bytes[RECEIVE_BYTES];
    for (;;) {
        ssize_t count = recv(c->fd, bytes, sizeof bytes, 0);
        if (count > 0) take_bytes(c, bytes, (size_t)count);
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) fail("the broker closed a connection");
        if (count < (ssize_t)sizeof bytes) return;
    }
}

static int all_idle(struct exchange *all) {
    for (int i = 0; i < run.connections; i++)
        if (all[i].sent || (run.answers && all[i].outstanding)) return 0;
    return 1;
}

/* acks=0 has no responses: the broker has received everything once it closes the connection after our end. */
static void wait_for_ends(struct exchange *all) {
    uint8_t byte;
    for (int i = 0; i < run.connections; i++) {
        fcntl(all[i].fd, F_SETFL, 0);
        shutdown(all[i].fd, SHUT_WR);
        if (recv(all[i].fd, &byte, 1, 0) != 0) note_error(-4);
        run.answered += all[i].begun;
    }
}

static int pacing_timer(void) {
    uint64_t period = run.interval_ns / (uint64_t)run.connections;
    if (period < 50000) period = 50000;
    struct timespec each = {.tv_sec = (time_t)(period / 1000000000u), .tv_nsec = (long)(period % 1000000000u)};
    struct itimerspec times = {.it_interval = each, .it_value = each};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    if (fd < 0 || timerfd_settime(fd, 0, &times, NULL)) fail("timer");
    return fd;
}

static struct exchange *open_exchanges(int poller) {
    struct exchange *all = calloc((size_t)run.connections, sizeof *all);
    uint8_t *frames = read_frames(run.frame_bytes * (size_t)run.connections, run.frame_bytes * (size_t)argument("first", 0));
    for (int i = 0; i < run.connections; i++) {
        struct exchange *c = &all[i];
        c->fd = connect_one();
        c->frame = frames + (size_t)i * run.frame_bytes;
        c->begun_at = calloc((size_t)run.depth, sizeof *c->begun_at);
        fcntl(c->fd, F_SETFL, O_NONBLOCK);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = (uint32_t)i};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event)) fail("epoll");
    }
    return all;
}

static void exchange(void) {
    run.frame_bytes = (size_t)argument("frame_bytes", 0);
    run.batch_at = (size_t)argument("batch_at", 0);
    run.error_at = (size_t)argument("error_at", 0);
    run.connections = (int)argument("connections", 1);
    run.depth = (int)argument("depth", 1);
    run.records = (uint32_t)argument("records", 1);
    run.answers = (int)argument("answers", 1);
    run.requests_max = argument("requests", 0);
    run.interval_ns = (uint64_t)argument("interval_us", 0) * 1000u;
    if (run.error_at + 2 > HEAD_BYTES || run.connections < 1 || run.depth < 1) fail("arguments");
    if (run.batch_at) fill_sequence_effects((size_t)argument("batch_bytes", 0));
    int poller = epoll_create1(0), timer = run.interval_ns ? pacing_timer() : -1;
    struct exchange *all = open_exchanges(poller);
    if (timer >= 0) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = UINT32_MAX};
        epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
    }
    uint64_t began = now_ns(), last = began;
    run.end_at = began + (uint64_t)(atof(text_argument("seconds", "1")) * 1e9);
    for (int i = 0; i < run.connections; i++)
        all[i].due_at = began + run.interval_ns * (uint64_t)i / (uint64_t)run.connections;
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(poller, events, EVENTS_MAX, 20);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u32 == UINT32_MAX) {
                uint64_t expired;
                if (read(timer, &expired, sizeof expired) > 0)
                    for (int k = 0; k < run.connections; k++) send_more(&all[k]);
                continue;
            }
            struct exchange *c = &all[events[i].data.u32];
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive_all(c);
            send_more(c);
        }
        uint64_t now = now_ns();
        if (count) last = now;
        int over = now >= run.end_at || (run.requests_max && run.begun >= run.requests_max);
        if (over && all_idle(all)) break;
        if (now > run.end_at + DRAIN_SECONDS_MAX * 1000000000ull) fail("answers are missing");
    }
    if (!run.answers) {
        wait_for_ends(all);
        last = now_ns();
    }
    print_result(run.answered, run.errors, run.first_error, (double)(last - began) / 1e9,
                 run.answer_bytes, run.answered * (long long)run.records);
}

/* --- fetch -------------------------------------------------------------------------------------------------------- */

struct reading {
    int fd;
    uint8_t *frame, *answer;
    size_t have, room;
    uint64_t offset, end;
};

static struct {
    size_t frame_bytes, offset_at;
    int check;
    long long answers, bytes, records;
} fetched;

static uint64_t take_varint(const uint8_t **at) {
    uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return value;
}

/* Position and length of the records in a version 12 response for one partition. */
static const uint8_t *records_of(const uint8_t *answer, size_t *length) {
    const uint8_t *at = answer + 4 + 4 + 1 + 4;
    int error = get16(at);
    at += 2 + 4;
    *length = 0;
    if (error || take_varint(&at) != 2) {
        note_error(error ? error : -3);
        return NULL;
    }
    uint64_t name = take_varint(&at);
    at += name - 1;
    if (take_varint(&at) != 2) note_error(-3);
    error = get16(at + 4);
    at += 4 + 2 + 8 + 8 + 8;
    if (error || take_varint(&at) > 1) {
        note_error(error ? error : -3);
        return NULL;
    }
    at += 4;
    uint64_t marked = take_varint(&at);
    *length = marked ? (size_t)marked - 1 : 0;
    return at;
}

/* Walk the complete batches; the last one may be truncated. Returns the offset after them. */
static uint64_t take_batches(const uint8_t *at, size_t length, uint64_t offset) {
    while (length >= BATCH_HEADER_BYTES) {
        size_t size = BATCH_LENGTH_COUNTS_FROM + (size_t)get32(at + 8);
        if (size > length) break;
        if (get64(at) != offset) note_error(-5);
        if (fetched.check && crc32c(at + CRC_COVERS_FROM, size - CRC_COVERS_FROM) != get32(at + CRC_AT)) note_error(2);
        offset = get64(at) + get32(at + LAST_OFFSET_DELTA_AT) + 1;
        fetched.records += get32(at + RECORD_COUNT_AT);
        fetched.bytes += (long long)size;
        at += size, length -= size;
    }
    return offset;
}

static void ask(struct reading *c) {
    put64(c->frame + fetched.offset_at, c->offset);
    c->have = 0;
    if (send(c->fd, c->frame, fetched.frame_bytes, MSG_NOSIGNAL) != (ssize_t)fetched.frame_bytes)
        fail("a fetch could not be sent");
}

/* Returns 1 if a response is complete. */
static int receive_answer(struct reading *c, int flags) {
    for (;;) {
        size_t wanted = c->have < 4 ? 4 : 4 + (size_t)get32(c->answer);
        if (c->have >= 4 && c->have == wanted) return 1;
        if (wanted > c->room) {
            c->room = wanted + (wanted >> 2);
            c->answer = realloc(c->answer, c->room);
        }
        ssize_t count = recv(c->fd, c->answer + c->have, wanted - c->have, flags);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
        if (count <= 0) fail("the broker closed a connection");
        c->have += (size_t)count;
    }
}

static void open_reading(struct reading *c, uint8_t *frame) {
    c->fd = connect_one();
    c->frame = frame;
    c->room = 2 << 20;
    c->answer = malloc(c->room);
}

static void fetch(void) {
    int connections = (int)argument("connections", 1), poller = epoll_create1(0), open = 0;
    fetched.frame_bytes = (size_t)argument("frame_bytes", 0);
    fetched.offset_at = (size_t)argument("offset_at", 0);
    fetched.check = (int)argument("check", 1);
    const char *range = text_argument("ranges", "");
    struct reading *all = calloc((size_t)connections, sizeof *all);
    uint8_t *frames = read_frames(fetched.frame_bytes * (size_t)connections, fetched.frame_bytes * (size_t)argument("first", 0));
    for (int i = 0; i < connections; i++) {
        struct reading *c = &all[i];
        char *next;
        c->offset = strtoull(range, &next, 10);
        c->end = strtoull(next + 1, &next, 10);
        range = next + 1;
        open_reading(c, frames + (size_t)i * fetched.frame_bytes);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event)) fail("epoll");
    }
    uint64_t began = now_ns(), end_at = began + (uint64_t)(atof(text_argument("seconds", "60")) * 1e9);
    for (int i = 0; i < connections; i++)
        if (all[i].offset < all[i].end) ask(&all[i]), open++;
    while (open && now_ns() < end_at) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(poller, events, EVENTS_MAX, 100);
        for (int i = 0; i < count; i++) {
            struct reading *c = &all[events[i].data.u32];
            size_t length;
            if (!receive_answer(c, MSG_DONTWAIT)) continue;
            const uint8_t *records = records_of(c->answer, &length);
            if (records) c->offset = take_batches(records, length, c->offset);
            fetched.answers++;
            if (!records || c->offset >= c->end) {
                epoll_ctl(poller, EPOLL_CTL_DEL, c->fd, NULL);
                open--;
            } else
                ask(c);
        }
    }
    if (open && argument("must_end", 1)) note_error(-6);
    print_result(fetched.answers, run.errors, run.first_error, (double)(now_ns() - began) / 1e9, fetched.bytes,
                 fetched.records);
}

/* --- round trip --------------------------------------------------------------------------------------------------- */

static void roundtrip(void) {
    size_t produce_bytes = (size_t)argument("frame_bytes", 0);
    fetched.frame_bytes = (size_t)argument("fetch_bytes", 0);
    fetched.offset_at = (size_t)argument("offset_at", 0);
    fetched.check = 1;
    run.batch_at = (size_t)argument("batch_at", 0);
    run.records = 1;
    long long count = argument("requests", 1000);
    useconds_t pause_us = (useconds_t)argument("pause_us", 1000);
    size_t error_at = (size_t)argument("error_at", 0);
    uint8_t *frames = read_frames(produce_bytes + fetched.frame_bytes, 0);
    fill_sequence_effects((size_t)argument("batch_bytes", 0));
    struct exchange producer = {.frame = frames};
    struct reading acks = {0}, reader = {.offset = (uint64_t)argument("offset", 0)};
    open_reading(&acks, frames);
    open_reading(&reader, frames + produce_bytes);
    uint64_t began = now_ns();
    for (; producer.begun < count; producer.begun++) {
        uint64_t next = reader.offset + 1, sent_at;
        size_t length;
        ask(&reader);
        usleep(pause_us);
        renew_frame(&producer);
        acks.have = 0;
        sent_at = now_ns();
        if (send(acks.fd, frames, produce_bytes, MSG_NOSIGNAL) != (ssize_t)produce_bytes) fail("send");
        while (reader.offset < next) {
            while (!receive_answer(&reader, 0)) {}
            const uint8_t *records = records_of(reader.answer, &length);
            if (!records) break;
            reader.offset = take_batches(records, length, reader.offset);
            if (reader.offset >= next) break;
            /* A refused record never arrives. */
            if (receive_answer(&acks, MSG_DONTWAIT) && get16(acks.answer + error_at)) break;
            ask(&reader);
        }
        note_latency(now_ns() - sent_at);
        while (!receive_answer(&acks, 0)) {}
        if (get16(acks.answer + error_at)) note_error(get16(acks.answer + error_at));
        if (run.errors) break;
    }
    print_result(producer.begun, run.errors, run.first_error, (double)(now_ns() - began) / 1e9, fetched.bytes,
                 fetched.records);
}

int main(int count, char **texts) {
    argument_count = count;
    arguments = texts;
    choose_crc();
    if (count > 1 && !strcmp(texts[1], "exchange")) exchange();
    else if (count > 1 && !strcmp(texts[1], "fetch")) fetch();
    else if (count > 1 && !strcmp(texts[1], "roundtrip")) roundtrip();
    else {
        fprintf(stderr, "replay exchange|fetch|roundtrip name=value ...\n");
        return 2;
    }
    return 0;
}
