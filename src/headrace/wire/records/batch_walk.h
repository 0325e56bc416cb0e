/* `walk_batches_plainly` of batch_walk.py, compiled: the same batches, the same result. A test holds the two equal. */
#ifndef HEADRACE_BATCH_WALK_H
#define HEADRACE_BATCH_WALK_H

#include "header.h"

#define OFFSET_MAX (INT64_MAX - 1)

struct walk_bounds {
    int64_t next_offset, epoch, epoch_max, size_max;
    int gaps;
};

static int read_bounds(PyObject *tuple, struct walk_bounds *bounds) {
    if (PyTuple_GET_SIZE(tuple) != 5) {
        PyErr_SetString(PyExc_TypeError, "the bounds of a walk are five values");
        return 0;
    }
    bounds->next_offset = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 0));
    bounds->epoch = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 1));
    bounds->epoch_max = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 2));
    bounds->size_max = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 3));
    bounds->gaps = PyObject_IsTrue(PyTuple_GET_ITEM(tuple, 4));
    return !PyErr_Occurred();
}

/* Appends to a list, which takes over the item; 0 with an exception. */
static int append(PyObject *list, PyObject *item) {
    if (item == NULL) return 0;
    int failed = PyList_Append(list, item);
    Py_DECREF(item);
    return !failed;
}

/* 1 if the batch at the beginning of the bytes is one that may follow, 0 if not, -1 with an exception. */
static int may_follow(const uint8_t *batch, int64_t rest, const int64_t fields[HEADER_FIELDS],
                      const struct walk_bounds *bounds) {
    int64_t base = fields[0], size = fields[1] + LENGTH_COUNTS_FROM, epoch = fields[2], delta = fields[6];
    int64_t count = fields[12];
    if (fields[3] != CURRENT_MAGIC || size < HEADER_BYTES || size > bounds->size_max || size > rest || count < 0 ||
        delta < 0 || count > delta + 1 || epoch < bounds->epoch || epoch > bounds->epoch_max || epoch < 0 ||
        base > OFFSET_MAX - delta || base < bounds->next_offset || (base != bounds->next_offset && !bounds->gaps))
        return 0;
    return checksum_is(batch + CRC_COVERS_FROM, size - CRC_COVERS_FROM, (uint32_t)fields[4]);
}

/* The place of a batch, and its position and header if it has a producer or a new epoch; 0 with an exception. */
static int note_batch(PyObject *places, PyObject *noted, int64_t position, const int64_t fields[HEADER_FIELDS],
                      const struct walk_bounds *bounds) {
    const int64_t place[4] = {fields[0], fields[0] + fields[6], fields[12] ? fields[8] : -1,
                              fields[1] + LENGTH_COUNTS_FROM};
    if (!append(places, numbers_tuple(place, 4))) return 0;
    if (fields[9] < 0 && fields[2] <= bounds->epoch) return 1;
    PyObject *header = header_tuple(fields);
    return header != NULL && append(noted, Py_BuildValue("(LN)", (long long)position, header));
}

static PyObject *walk_of(const uint8_t *bytes, int64_t end, struct walk_bounds bounds) {
    PyObject *places = PyList_New(0), *noted = PyList_New(0);
    int64_t position = 0, fields[HEADER_FIELDS];
    while (places != NULL && noted != NULL && end - position >= HEADER_BYTES) {
        read_header(bytes + position, fields);
        int good = may_follow(bytes + position, end - position, fields, &bounds);
        if (good == 0) break;
        if (good < 0 || !note_batch(places, noted, position, fields, &bounds)) {
            Py_CLEAR(places);
            break;
        }
        bounds.next_offset = fields[0] + fields[6] + 1;
        bounds.epoch = fields[2];
        position += fields[1] + LENGTH_COUNTS_FROM;
    }
    if (places == NULL || noted == NULL) {
        Py_XDECREF(places);
        Py_XDECREF(noted);
        return NULL;
    }
    return Py_BuildValue("(NNL)", places, noted, (long long)position);
}

#endif
