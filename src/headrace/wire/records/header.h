/* The header of a record batch and its checksum, as header.py has them, for every helper that reads them. */
#ifndef HEADRACE_HEADER_H
#define HEADRACE_HEADER_H

#include <Python.h>
#include <stdint.h>

enum {
    HEADER_BYTES = 61,
    HEADER_FIELDS = 13,
    LENGTH_COUNTS_FROM = 12,
    CRC_COVERS_FROM = 21,
    CURRENT_MAGIC = 2,
    SHORT_BYTES = 1024, /* calling the package for less takes longer than the sum */
};

static PyObject *crc32c;         /* of headrace.wire.checksum */

static uint32_t get_u32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}
static int32_t get32(const uint8_t *at) { return (int32_t)get_u32(at); }
static int16_t get16(const uint8_t *at) { return (int16_t)(at[0] << 8 | at[1]); }
static int64_t get64(const uint8_t *at) { return (int64_t)((uint64_t)get_u32(at) << 32 | get_u32(at + 4)); }

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_of_short(const uint8_t *bytes, Py_ssize_t count) {
    uint64_t state = UINT32_MAX, word;
    for (; count >= 8; count -= 8, bytes += 8) {
        memcpy(&word, bytes, 8);
        state = __builtin_ia32_crc32di(state, word);
    }
    for (; count; count--) state = __builtin_ia32_crc32qi((uint32_t)state, *bytes++);
    return ~(uint32_t)state;
}
static int has_crc_of_short(void) { return __builtin_cpu_supports("sse4.2"); }
#else
static uint32_t crc_of_short(const uint8_t *bytes, Py_ssize_t count) { (void)bytes, (void)count; return 0; }
static int has_crc_of_short(void) { return 0; }
#endif

/* 1 if the checksum of the bytes is this one, 0 if not, -1 with an exception. */
static int checksum_is(const uint8_t *bytes, Py_ssize_t count, uint32_t expected) {
    if (count < SHORT_BYTES && has_crc_of_short()) return crc_of_short(bytes, count) == expected;
    PyObject *view = PyMemoryView_FromMemory((char *)bytes, count, PyBUF_READ);
    if (view == NULL) return -1;
    PyObject *sum = PyObject_CallOneArg(crc32c, view);
    Py_DECREF(view);
    if (sum == NULL) return -1;
    unsigned long found = PyLong_AsUnsignedLong(sum);
    Py_DECREF(sum);
    if (PyErr_Occurred()) return -1;
    return found == expected;
}

/* The fields in the order of HEADER. */
static void read_header(const uint8_t *batch, int64_t fields[HEADER_FIELDS]) {
    const int64_t found[HEADER_FIELDS] = {
        get64(batch), get32(batch + 8), get32(batch + 12), (int8_t)batch[16], get_u32(batch + 17),
        get16(batch + 21), get32(batch + 23), get64(batch + 27), get64(batch + 35), get64(batch + 43),
        get16(batch + 51), get32(batch + 53), get32(batch + 57),
    };
    memcpy(fields, found, sizeof found);
}

static PyObject *numbers_tuple(const int64_t *numbers, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (number == NULL) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

/* As HEADER.unpack_from. */
static PyObject *header_tuple(const int64_t fields[HEADER_FIELDS]) { return numbers_tuple(fields, HEADER_FIELDS); }

#endif
