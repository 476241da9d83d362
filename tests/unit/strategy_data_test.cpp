// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The bytes that replicas send and hold, also sharded (ZeRO) and offloaded, against formulas
// written out here.

#include "program/check_races_and_matching.hpp"
#include "program/operands.hpp"
#include "stack_samples.hpp"
#include "tests/support/unit_costs.hpp"
#include "workloads/stack/partitioning.hpp"

namespace isoscale::workloads {
namespace {

using program::OpKind;

constexpr double sequence = 4, samples = 2, hidden = 16, f32 = 4;
/// A layer has 4 h^2 of attention and 8 h^2 of the MLP.
constexpr double layer_parameters = 12 * hidden * hidden;
constexpr double activation_bytes = sequence * samples * hidden * f32;

/// Bytes put on links along dp in a step, all ranks together, by kind.
std::map<OpKind, double> sent_by_kind(const program::ProgramSet& set) {
  std::map<OpKind, double> sent;
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    for (const program::Traffic& entry : facts_of(set, rank).traffic) {
      if (!entry.axes.contains(mesh::Axis::dp)) continue;
      sent[entry.kind] += static_cast<double>(entry.sent.value());
    }
  }
  return sent;
}

int calls(const program::RankProgram& program, program::Phase phase, OpKind kind) {
  return count_ops(program, [&](const program::Op& op) {
    return op.place.phase == phase && program::kind_of(op.payload) == kind;
  });
}

TEST(DdpTest, ReducesEachBucketOnceHoweverManyMicrobatches) {
  for (const char* overlap : {"on", "off"}) {
    for (const int microbatches : {1, 2, 7}) {
      // A layer has four tensors, each of which fills a bucket.
      const Request base = small(3, microbatches, {{"overlap", overlap}, {"bucket", "1"}});
      const program::ProgramSet set = weak(base, {.dp = 4});
      EXPECT_EQ(calls(set.of(0), program::Phase::gradient_reduction, OpKind::all_reduce), 3 * 4);
      // 2 (n - 1) / n of all gradients from each of n ranks.
      EXPECT_EQ(sent_by_kind(set).at(OpKind::all_reduce), 2 * 3 * 3 * layer_parameters * f32);
    }
  }
}

TEST(FunnelTest, SendsWhatGoesThroughTheFirstReplica) {
  for (const int n : {2, 4}) {
    for (const int microbatches : {1, 5}) {
      const program::ProgramSet set =
          weak(small(2, microbatches, "strategy=funnel"_options), {.dp = n});
      program::check(set);
      const double activations = microbatches * (n - 1) * activation_bytes;
      const double parameters = 2 * layer_parameters * f32 * (n - 1);
      // Inputs and output gradients are scattered, outputs gathered: of all replicas but the first.
      EXPECT_EQ(sent_by_kind(set), (std::map<OpKind, double>{{OpKind::scatter, 2 * activations},
                                                             {OpKind::gather, activations},
                                                             {OpKind::reduce, parameters},
                                                             {OpKind::broadcast, parameters}}));
    }
  }
}

TEST(FunnelTest, KeepsOptimizerStateAndInputsOnTheFirstReplicaAlone) {
  const int n = 4, microbatches = 3;
  const Options options = "strategy=funnel optimizer=adam"_options;
  const program::ProgramSet set = weak(small(2, microbatches, options), {.dp = n, .pp = 2});
  ASSERT_EQ(set.programs.size(), 4U);  // two stages, first replica and others
  const auto of_rank = [&](int rank) {
    return std::array{bytes_of(set.of(rank), program::Role::input),
                      bytes_of(set.of(rank), program::Role::optimizer),
                      1.0 * calls(set.of(rank), program::Phase::optimizer, OpKind::update)};
  };
  EXPECT_THAT(of_rank(0), ElementsAre(n * microbatches * activation_bytes,
                                      Ge(2 * 2 * layer_parameters * f32), 1));
  EXPECT_THAT(of_rank(n - 1), Each(0));
  for (const auto& [op, collective] : all_of<program::Collective>(set.of(0))) {
    EXPECT_EQ(op->stream, 0) << "nothing overlaps";
  }
}

TEST(GradDtypeTest, HalvesTheBytesAndFillsBucketsByWhatTravels) {
  const int n = 4;
  const auto traffic = [&](const char* type) {
    // 32 h^2 bytes: 8 h^2 elements in f32, 16 h^2 in bf16.
    return weak(small(4, 2, {{"grad_dtype", type}, {"bucket", "8192"}}), {.dp = n});
  };
  const program::ProgramSet wide = traffic("same"), narrow = traffic("bf16");
  const double parameters = 4 * layer_parameters;
  EXPECT_EQ(sent_by_kind(wide).at(OpKind::all_reduce), 2 * (n - 1) * parameters * f32);
  EXPECT_EQ(sent_by_kind(narrow).at(OpKind::all_reduce), 2 * (n - 1) * parameters * 2);
  // Tensors in order of backward: 4, 4, 1 and 3 h^2 a layer. Wide: (4 4) (1 3 4) (4 1 3) (4 4) ...
  const auto reductions = [](const program::ProgramSet& set) {
    return calls(set.of(0), program::Phase::gradient_reduction, OpKind::all_reduce);
  };
  EXPECT_EQ(reductions(wide), 6);
  EXPECT_EQ(reductions(narrow), 3);
  EXPECT_EQ(calls(narrow.of(0), program::Phase::gradient_reduction, OpKind::cast), 2 * 3);
}

TEST(CompressionTest, SendsTheLargestOfEachBlockWithTheirPlaces) {
  const int n = 4;
  for (const auto& [ratio, block, of_block] :  // elements of a block, and those that are kept
       {std::tuple{"1", 1024, 11}, {"10", 100, 10}, {"100", 64, 64}, {"1", 10, 1}}) {
    Options options{{"compression", "topk"}, {"compression_ratio", ratio}, {"bucket", "1"}};
    options["compression_block"] = std::to_string(block);
    const program::ProgramSet set = weak(small(1, 2, options), {.dp = n});
    program::check(set);
    double kept = 0;
    for (const double tensor : {4, 4, 1, 3}) {
      kept += std::ceil(tensor * hidden * hidden / block) * of_block;
    }
    // Each of n ranks passes on the parts of all but one: an f32 value and an i32 place of each.
    EXPECT_EQ(sent_by_kind(set),
              (std::map<OpKind, double>{{OpKind::all_gather, n * (n - 1) * kept * (4 + 4)}}));
    // The values that have not been sent are kept beside the gradients.
    EXPECT_EQ(bytes_of(set.of(0), program::Role::gradient), 2 * layer_parameters * f32);
  }
}

TEST(PartitionTest, DealsByLargestRemainder) {
  using stack::distribute_by_weight;
  EXPECT_THAT(distribute_by_weight(8, {3, 1}, 1), ElementsAre(6, 2));
  EXPECT_THAT(distribute_by_weight(10, {1, 1, 1}, 1), ElementsAre(4, 3, 3));
  EXPECT_THAT(distribute_by_weight(10, {2.6, 2.7, 4.7}, 1), ElementsAre(2, 3, 5));
  EXPECT_THAT(distribute_by_weight(4, {100, 1, 1, 1}, 1), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(distribute_by_weight(9, {100, 1, 1}, 2), ElementsAre(5, 2, 2));
}

std::vector<int> microbatches_of(const Request& base, const mesh::Shape& mesh,
                                 const std::vector<double>& speeds = {}) {
  Request request = scaled(base, mesh, Scaling::weak);
  request.speed_of_rank = speeds;
  return stack::distribution_of(request).microbatches;
}

TEST(PartitionTest, FollowsSkewSpeedAndSchedule) {
  EXPECT_THAT(microbatches_of(small(2, 4), {.dp = 3}), ElementsAre(4, 4, 4));
  EXPECT_THAT(microbatches_of(small(2, 5, "partition=skewed:3"_options), {.dp = 3}),
              ElementsAre(9, 3, 3));
  EXPECT_THAT(microbatches_of(small(2, 5, "partition=skewed:0.5"_options), {.dp = 3}),
              ElementsAre(3, 6, 6));
  const Request proportional = small(2, 4, "partition=proportional"_options);
  EXPECT_THAT(microbatches_of(proportional, {.dp = 2}), ElementsAre(4, 4));  // nobody has measured
  EXPECT_THAT(microbatches_of(proportional, {.dp = 2}, {30, 10}), ElementsAre(6, 2));
  // Ranks 0 and 1 are one replica: its slower rank counts.
  EXPECT_THAT(microbatches_of(proportional, {.tp = 2, .dp = 2}, {10, 90, 30, 30}),
              ElementsAre(2, 6));
  // Interleaved deals in turns of pp; the ranks of a replica are two apart.
  const Request turns = small(4, 8, "partition=proportional schedule=interleaved v=2"_options);
  EXPECT_THAT(microbatches_of(turns, {.dp = 2, .pp = 4}, {5, 1, 5, 1, 5, 1, 5, 1}),
              ElementsAre(12, 4));
}

TEST(PartitionTest, SharesProgramsBetweenReplicasThatGetAsMuch) {
  EXPECT_EQ(weak(small(2, 8), {.dp = 8}).programs.size(), 1U);
  EXPECT_EQ(weak(small(2, 8, "partition=skewed:3"_options), {.dp = 8}).programs.size(), 3U);
  EXPECT_EQ(weak(small(2, 10, "partition=skewed:3"_options), {.dp = 8}).programs.size(), 2U);
}

constexpr std::uint64_t layers = 4, psi = layers * 12 * 16 * 16;

/// One bucket a layer (in f32) unless told otherwise.
Request states(Options options, int microbatches, Precision precision = Precision::f32) {
  options.try_emplace("bucket", std::to_string(4 * psi / layers));
  return request_of("", microbatches, std::move(options), precision);
}

double sent(const program::Facts& facts) {
  return sent_in(facts, [](const program::Traffic&) { return true; });
}

/// arXiv 1910.02054, section 7: all-reduce 2 psi; stages 1 and 2 a reduce-scatter and an
/// all-gather, 2 psi; stage 3 one more all-gather, 3 psi. What is done in each microbatch counts as
/// often: the reduce-scatter of stages 2 and 3, the all-gathers of stage 3.
TEST(ZeroTest, VolumeOfAStepFollowsThePaper) {
  for (const std::uint64_t dp : {2U, 4U, 8U}) {
    for (const std::uint64_t m : {1U, 2U, 5U}) {
      const std::uint64_t part = (dp - 1) * psi * 4 / dp;
      std::vector<double> volumes;
      for (const char* zero : {"0", "1", "2", "3"}) {
        const Request base = states({{"zero", zero}}, static_cast<int>(m));
        volumes.push_back(sent(facts_of(weak(base, {.dp = static_cast<int>(dp)}))));
      }
      EXPECT_THAT(volumes, ElementsAre(2 * part, 2 * part, (m + 1) * part, 3 * m * part));
    }
  }
}

/// Along ep what a step sends along dp elsewhere; along dp the sums of a part are added up, once a
/// step: an all-reduce of 1/ep. A rank keeps what it keeps with as many ranks along dp alone.
TEST(ZeroTest, HybridShardingSumsPartsOverTheGroups) {
  constexpr std::uint64_t m = 3;
  for (const std::uint64_t shards : {2U, 4U}) {
    for (const std::uint64_t groups : {1U, 2U, 4U}) {
      const std::uint64_t part = (shards - 1) * psi * 4 / shards;
      for (const auto& [zero, parts] :
           std::map<std::string, std::uint64_t>{{"1", 2}, {"2", m + 1}, {"3", 3 * m}}) {
        SCOPED_TRACE(fmt::format("zero={} on {} groups of {}", zero, groups, shards));
        const Request base = states({{"zero", zero}, {"optimizer", "adam"}}, static_cast<int>(m));
        const program::Facts facts =
            facts_of(weak(base, {.ep = static_cast<int>(shards), .dp = static_cast<int>(groups)}));
        const auto along = [&](mesh::Axis axis) {
          return sent_in(facts, [axis](const program::Traffic& traffic) {
            return traffic.axes.contains(axis);
          });
        };
        EXPECT_EQ(along(mesh::Axis::ep), parts * part);
        EXPECT_EQ(along(mesh::Axis::dp), 2 * (groups - 1) * psi / shards * 4 / groups);
        const program::Facts plain = facts_of(weak(base, {.dp = static_cast<int>(shards)}));
        for (const auto role :
             {program::Role::weight, program::Role::gradient, program::Role::optimizer}) {
          EXPECT_EQ(peak_of(facts, role), peak_of(plain, role));
        }
      }
    }
  }
}

/// Adam in bf16: 2 psi bytes of weights, 4 psi of gradients, which accumulate in f32, 4 psi of
/// masters and 8 psi of moments.
TEST(ZeroTest, MemoryOfARankFollowsTheFormula) {
  for (const std::uint64_t dp : {2U, 4U, 8U}) {
    for (const std::uint64_t zero : {0U, 1U, 2U, 3U}) {
      const Options options{
          {"zero", std::to_string(zero)}, {"optimizer", "adam"}, {"bucket", "6144"}};
      const program::Facts facts = facts_of(
          weak(states(options, 2, Precision::bf16), mesh::Shape{.dp = static_cast<int>(dp)}));
      const auto share = [&](std::uint64_t bytes, std::uint64_t from) {
        return zero >= from ? bytes * psi / dp : bytes * psi;
      };
      EXPECT_EQ(peak_of(facts, program::Role::weight), share(2, 3)) << zero;
      EXPECT_EQ(peak_of(facts, program::Role::gradient), share(4, 2)) << zero;
      EXPECT_EQ(peak_of(facts, program::Role::master), share(4, 1)) << zero;
      const double moments = peak_of(facts, program::Role::optimizer);
      EXPECT_GE(moments, share(8, 1)) << zero;
      EXPECT_LE(moments, share(8, 1) + 16 * 4 * layers) << zero;  // powers: 8 bytes a bucket
    }
  }
}

/// Buffers of workspace, of a type and size, that the step uses.
std::size_t count_buffers(const program::RankProgram& program, program::DType type,
                          std::uint64_t count) {
  std::set<program::BufferId> used;
  for (const program::Op& op : program.step().ops) {
    program::for_each_slice(
        op.payload, [&](const program::Slice& slice, program::Mode) { used.insert(slice.buffer); });
  }
  std::size_t found = 0;
  for (const program::BufferId id : used) {
    const program::Buffer& buffer = program.buffers[id];
    if (buffer.role == program::Role::workspace && buffer.space == program::Space::device &&
        buffer.dtype == type && buffer.count == count) {
      ++found;
    }
  }
  return found;
}

TEST(ZeroTest, KeepsAsManyGatheredBucketsAsArePrefetched) {
  for (const std::size_t prefetch : {0U, 1U, 3U}) {
    Options options{{"zero", "3"}, {"gather_bucket", std::to_string(2 * psi / layers)}};
    options["prefetch"] = std::to_string(prefetch);
    const program::ProgramSet set = weak(states(options, 3, Precision::bf16), {.dp = 2});
    EXPECT_EQ(count_buffers(set.of(0), program::DType::bf16, psi / layers), prefetch + 1);
    EXPECT_EQ(count_buffers(set.of(0), program::DType::f32, psi / layers), 2U);
  }
}

/// Reductions take longer than the backward pass of a layer, but not longer than both passes. If
/// there is room for all buckets of a microbatch, the next forward pass hides them.
TEST(ZeroTest, BackwardFillsAsManyBucketsMoreAsMayBeInFlight) {
  constexpr int m = 3;
  constexpr std::int64_t each = 10;
  constexpr double reduction = each * 4.0 * psi / layers;
  const auto moves = [](OpKind kind) { return kind == OpKind::reduce_scatter; };
  for (const char* zero : {"2", "3"}) {
    std::vector<double> times;
    for (const char* in_flight : {"0", "1", "2", "3", "1000"}) {
      const Options options{{"zero", zero}, {"reduces_in_flight", in_flight}};
      const program::ProgramSet set = weak(states(options, m), {.dp = 2});
      const auto buffers = std::min<std::size_t>(std::stoul(in_flight) + 1, layers * m);
      const std::size_t gathered = zero[0] == '3' ? 2 : 0;  // f32 too
      EXPECT_EQ(count_buffers(set.of(0), program::DType::f32, psi / layers), buffers + gathered);
      times.push_back(simulate::step_time(set, program::Folding::as_streamed, moves, each));
      const double flop = flop_of(set), backward = flop_in(set, program::Phase::backward);
      const double of_layer = backward / (m * layers);
      ASSERT_GT(reduction, of_layer);
      ASSERT_LT(reduction, flop / (m * layers));
      if (buffers >= layers) {
        EXPECT_DOUBLE_EQ(times.back(), flop + layers * reduction - (layers - 1) * of_layer);
      }
    }
    EXPECT_GT(times[0], times[1]) << zero;
    EXPECT_GT(times[1], times[2]) << zero;
    EXPECT_GE(times[2], times[3]) << zero;
  }
  const auto set = [](const Options& options) {
    return weak(states(options, m), {.dp = 2}).of(0).step().ops.size();
  };
  EXPECT_EQ(set("zero=1 reduces_in_flight=0"_options), set("zero=1"_options));
}

TEST(ZeroTest, BucketsArePaddedToEqualParts) {
  const mesh::Shape mesh{.dp = 5};
  const auto facts = facts_of(weak(states("zero=2"_options, 1), mesh));
  const std::uint64_t of_layer = psi / layers;  // 3072, not a multiple of 5
  const std::uint64_t part = (of_layer + 4) / 5;
  EXPECT_EQ(peak_of(facts, program::Role::gradient), layers * part * 4);
  EXPECT_EQ(sent(facts), 2 * layers * part * 4 * 4);
}

TEST(ZeroTest, IsNothingWithoutReplicasAndHasStreamsOnlyWithOverlap) {
  for (const char* zero : {"1", "2", "3"}) {
    const program::ProgramSet set = weak(states({{"zero", zero}}, 2), {.tp = 2});
    const program::ProgramSet plain = weak(states({}, 2), {.tp = 2});
    EXPECT_EQ(set.of(0).step().ops.size(), plain.of(0).step().ops.size());
  }
  const program::ProgramSet off = weak(states("zero=3 overlap=off"_options, 2), {.dp = 2});
  EXPECT_EQ(off.of(0).streams.size(), 1U);
  const program::ProgramSet on = weak(states("zero=3"_options, 2), {.dp = 2});
  EXPECT_THAT(on.of(0).streams, UnorderedElementsAre("compute", "dp", "states"));
}

/// Each copy reads and writes. Weights come for each pass of each microbatch and go back once;
/// where they have no masters they come once more to be updated. Masters and two moments come and
/// go once a step.
TEST(OffloadTest, CopiesWhatTheFormulaSays) {
  for (const std::uint64_t m : {1U, 2U, 5U}) {
    const auto copied = [&](const char* what, Precision precision) {
      const Options options{{"offload", what}, {"optimizer", "adam"}};
      return copied_in(weak(states(options, static_cast<int>(m), precision), {}));
    };
    EXPECT_EQ(copied("weights", Precision::f32), 2 * (2 * m + 2) * psi * 4);
    EXPECT_EQ(copied("weights", Precision::bf16), 2 * (2 * m + 1) * psi * 2);
    EXPECT_EQ(copied("optimizer", Precision::bf16), 2 * 2 * psi * (4 + 8));
  }
}

TEST(OffloadTest, LeavesTheDeviceTwoBuffers) {
  const auto weights = weak(states("offload=weights"_options, 2, Precision::bf16), {}).of(0);
  // Two are of a layer in use and the one that comes, and two of buckets under update, here of two
  // layers (a bucket of f32 bytes holds one layer).
  EXPECT_EQ(count_buffers(weights, program::DType::bf16, psi / layers), 4U);
  const program::Facts facts = program::facts(weights, {});
  EXPECT_EQ(peak_of(facts, program::Role::weight), 2 * psi);
  EXPECT_EQ(facts.peak_live[static_cast<std::size_t>(program::Space::pinned)].value(), 2 * psi);
}

TEST(OffloadTest, ManagedMemoryIsAdvisedAndNotCopied) {
  for (const char* what : {"weights", "optimizer"}) {
    const program::ProgramSet set = weak(
        states({{"offload", what}, {"offload_memory", "managed"}, {"optimizer", "adam"}}, 2), {});
    EXPECT_EQ(copied_in(set), 0U) << what;
    // One a layer and pass of each of two microbatches; or two moments of four buckets in and out.
    EXPECT_THAT(all_of<program::Advise>(set.of(0)), SizeIs(2 * 2 * layers)) << what;
  }
}

TEST(DataRefusals, NameTheNumbersWhatExcludesWhatAndTheNearestThatWorks) {
  const mesh::Shape dp4{.dp = 4};
  const Options turns = "partition=proportional schedule=interleaved v=2"_options;
  const Options managed = "zero=1 offload=weights offload_memory=managed"_options;
  const auto with = [](const Options& options) { return small(2, 8, options); };
  expect_refused(
      {{with("strategy=funnel overlap=on"_options), dp4, {"=funnel", "overlap=on"}},
       {with("strategy=funnel partition=skewed:2"_options), dp4, {"=funnel", "=skewed:2"}},
       {with("strategy=funnel grad_dtype=bf16"_options), dp4, {"=funnel", "_dtype=bf16"}},
       {with("strategy=funnel compression=topk"_options), dp4, {"=funnel", "=topk"}},
       {with("compression=topk grad_dtype=f16"_options), dp4, {"=topk", "_dtype=same"}},
       {request_of("layers=1 hidden=16384 ffn=65536 head_size=2048", 1,
                   "compression=topk bucket=1e12"_options),
        dp4,
        {"=topk", "2147483647", "smaller bucket"}},
       {with("partition=skew:2"_options), dp4, {"skewed:X"}},
       {with("partition=skewed:-1"_options), dp4, {"0.01 to 100"}},
       // 4 microbatches over 4 replicas in shares 3 : 1 : 1 : 1 take 6, so 2 each at least.
       {small(2, 1, "partition=skewed:3"_options), dp4, {"4 microbatches to dp=4", "=2", "=16"}},
       {small(2, 1, "partition=proportional"_options), dp4, {"microbatches=2"}},
       {small(4, 4, turns), {.dp = 2, .pp = 4}, {"microbatches=8"}},
       {states("zero=3 offload=weights"_options, 2), dp4, {"dp=4", "zero=2"}},
       {states("gather=next_step"_options, 2), dp4, {"zero=0 excludes gather", "zero=1|2"}},
       {states("zero=3 gather=next_step"_options, 2), dp4, {"zero=3 excludes gather", "=step_end"}},
       {states("zero=3 reduce_bucket=1MiB"_options, 2), dp4, {"reduce_", "gather_bucket=1MiB"}},
       {states(managed, 2), dp4, {"zero=1", "offload_memory=pinned"}},
       {states("offload=optimizer"_options, 2), {}, {"nothing to offload", "optimizer=adam"}}},
      Scaling::weak);
}

}  // namespace
}  // namespace isoscale::workloads
