// Writes plain records, a committed and an aborted transaction, reads them back as a group, and tells what it saw.
//
//	program BOOTSTRAP TOPIC
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	secondsMax  = 60
	privateFrom = 10_000 // no API of Kafka has a number as high
	plainCount  = 100
)

type report struct {
	PrivateKeys []int16  `json:"private_keys"`
	Values      []string `json:"values"`
	Offsets     []int64  `json:"committed_offsets"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(os.Args[1]))...)
	check(err)
	return made
}

// The keys that the broker advertises and Kafka does not know.
func privateKeys(ctx context.Context) []int16 {
	asking := client()
	defer asking.Close()
	answer, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, asking)
	check(err)
	var found []int16
	for _, each := range answer.ApiKeys {
		if each.ApiKey >= privateFrom {
			found = append(found, each.ApiKey)
		}
	}
	return found
}

func write(ctx context.Context, topic string) {
	plain := client(kgo.RequiredAcks(kgo.AllISRAcks()))
	for number := 0; number < plainCount; number++ {
		record := &kgo.Record{Topic: topic, Value: []byte(fmt.Sprintf("plain %d", number))}
		check(plain.ProduceSync(ctx, record).FirstErr())
	}
	plain.Close()
	transactional := client(kgo.TransactionalID("go-" + topic))
	defer transactional.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		check(transactional.BeginTransaction())
		value := []byte(map[kgo.TransactionEndTry]string{kgo.TryCommit: "committed", kgo.TryAbort: "aborted"}[end])
		check(transactional.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: value}).FirstErr())
		check(transactional.EndTransaction(ctx, end))
	}
}

func read(ctx context.Context, topic string) (values []string, offsets []int64) {
	reading := client(
		kgo.ConsumerGroup("go-group-"+topic),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DisableAutoCommit(),
	)
	defer reading.Close()
	for len(values) < plainCount+1 {
		fetches := reading.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	check(reading.CommitUncommittedOffsets(ctx))
	for _, partitions := range reading.CommittedOffsets() {
		for _, committed := range partitions {
			offsets = append(offsets, committed.Offset)
		}
	}
	return values, offsets
}

func main() {
	ctx, stop := context.WithTimeout(context.Background(), secondsMax*time.Second)
	defer stop()
	found := report{PrivateKeys: privateKeys(ctx)}
	write(ctx, os.Args[2])
	found.Values, found.Offsets = read(ctx, os.Args[2])
	check(json.NewEncoder(os.Stdout).Encode(found))
}
