// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The waits and the storage that the builder derives, and the programs that the check refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "op_samples.hpp"
#include "program/check.hpp"
#include "program/facts.hpp"
#include "refusal.hpp"

namespace isoscale::program {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(const auto& action) { return testing_support::refusal<base::Error>(action); }

/// A step that is written op by op on the stream 0 (compute), `side` and `other`.
class BuilderTest : public testing::Test {
 protected:
  BuilderTest() { builder.begin(Section::step); }

  BufferId floats(std::uint64_t count) { return program::floats(builder, count); }
  Slice whole(BufferId id) const { return builder.whole(id); }
  void emit(StreamId stream, const Payload& payload) { builder.emit(stream, payload); }
  std::vector<Wait> waits_of(std::size_t op) {
    const auto waits = program.step().waits_of(program.step().ops.at(op));
    return {waits.begin(), waits.end()};
  }
  void finish() {
    program = builder.finish();
    EXPECT_NO_THROW(check_races(program, {}));
  }

  Builder builder{{}};
  const StreamId side = builder.stream("side"), other = builder.stream("other");
  RankProgram program;
};

TEST_F(BuilderTest, DerivesAWaitFromAReadAfterAWriteOnAnotherStream) {
  const BufferId a = floats(100), b = floats(100);
  emit(0, fill(whole(a)));
  emit(side, copy(whole(a), whole(b)));
  finish();

  ASSERT_EQ(program.step().ops.size(), 2U);
  EXPECT_TRUE(program.step().ops[0].awaited);
  const auto waits = waits_of(1);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].stream, 0);
  EXPECT_EQ(waits[0].count, 1U);
}

TEST_F(BuilderTest, DisjointSlicesOfOneBufferAreIndependent) {
  const BufferId a = floats(100);
  emit(0, fill({.buffer = a, .offset = 0, .count = 50}));
  emit(side, fill({.buffer = a, .offset = 50, .count = 50}));
  emit(side, fill({.buffer = a, .offset = 49, .count = 1}));
  finish();
  EXPECT_EQ(program.step().ops[1].wait_count, 0);
  EXPECT_EQ(program.step().ops[2].wait_count, 1);
}

TEST_F(BuilderTest, LeavesOutWhatAnotherWaitImplies) {
  // c depends on a (stream 0) and on b (stream 1), and b already on a: one wait is enough.
  const BufferId x = floats(10), y = floats(20), z = floats(20);
  emit(0, fill(whole(x)));
  emit(side, copy(whole(x), {.buffer = y, .offset = 0, .count = 10}));
  emit(side, copy(whole(x), {.buffer = y, .offset = 10, .count = 10}));
  emit(other, Add{.rows = 1,
                  .columns = 10,
                  .a = {.slice = whole(x), .row_stride = 10},
                  .b = {.slice = whole(y), .row_stride = 10},
                  .dst = {.slice = whole(z), .row_stride = 10}});
  finish();
  const auto waits = waits_of(3);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].stream, side);
  EXPECT_EQ(waits[0].count, 2U);
}

TEST_F(BuilderTest, ReusesStorageOnOneStreamAtOnce) {
  for (int i = 0; i < 10; ++i) {
    const BufferId a = floats(1024);
    emit(0, fill(whole(a)));
    builder.release(a);
  }
  finish();
  EXPECT_EQ(program.arena_bytes[0], 1024U * 4);
}

TEST_F(BuilderTest, DoesNotReuseStorageThatAnotherStreamMayStillUse) {
  const BufferId a = floats(1024), b = floats(1024);
  emit(side, fill(whole(a)));
  builder.release(a);
  emit(0, fill(whole(b)));  // knows nothing of `side`
  finish();
  EXPECT_EQ(program.arena_bytes[0], 2U * 1024 * 4);
  EXPECT_EQ(program.step().ops[1].wait_count, 0);
}

TEST_F(BuilderTest, SecondUserOfReusedStorageAlsoComesAfterItsFormerUsers) {
  // The block passes from `a` (side) to `b`; its first half is written by a stream that knows
  // `side`, its second half by one that does not and must be made to wait.
  const BufferId a = floats(1024), probe = floats(1024);
  emit(side, fill(whole(a)));
  emit(0, copy(whole(a), whole(probe)));
  builder.release(a);
  const BufferId b = floats(1024);
  emit(0, fill({.buffer = b, .offset = 0, .count = 512}));
  emit(other, fill({.buffer = b, .offset = 512, .count = 512}));
  finish();
  EXPECT_EQ(program.buffers[b].offset, program.buffers[a].offset);
  EXPECT_EQ(program.step().ops[3].wait_count, 1);
}

TEST_F(BuilderTest, RefusesMistakesOfAuthors) {
  const BufferId a = floats(10), b = floats(10);
  EXPECT_THAT(error_of([&] { emit(0, copy(whole(a), whole(b))); }),
              HasSubstr("nothing has written"));
  emit(0, fill({.buffer = a, .offset = 0, .count = 5}));
  EXPECT_THAT(error_of([&] { emit(0, copy(whole(a), whole(b))); }),
              HasSubstr("nothing has written"));
  EXPECT_THAT(error_of([&] { emit(0, fill({.buffer = a, .offset = 6, .count = 5})); }),
              HasSubstr("ends past its buffer of 10"));
  builder.release(a);
  EXPECT_THAT(error_of([&] { emit(0, fill(whole(a))); }), HasSubstr("after its release"));
  EXPECT_THAT(error_of([&] {
                const Matrix square{.slice = whole(b), .row_stride = 4};
                emit(0, Gemm{.m = 4, .n = 4, .k = 4, .a = square, .b = square, .d = square});
              }),
              HasSubstr("needs 16 elements, its slice has 10"));
}

TEST_F(BuilderTest, FollowsTheScaleOfACastToTheGemmThatReadsIt) {
  const auto dense = [&](BufferId id) { return Matrix{whole(id), 4}; };
  const BufferId wide = floats(16), product = floats(16);
  const BufferId plain = builder.allocate({.dtype = DType::e4m3, .count = 16});
  const BufferId turned = builder.allocate({.dtype = DType::e4m3, .count = 16});
  const BufferId descale = floats(1), unrelated = floats(1);
  emit(0, fill(whole(wide)));
  emit(0, fill(whole(unrelated)));
  emit(0, Cast{.rows = 4,
               .columns = 4,
               .src = dense(wide),
               .dst = dense(plain),
               .transposed = dense(turned),
               .scaling = CastScale::amax,
               .target = 448,
               .descale = descale});
  emit(side, Gemm{.m = 4,
                  .n = 4,
                  .k = 4,
                  .a = dense(wide),
                  .b = dense(wide),
                  .d = dense(product),
                  .descale_a = unrelated,
                  .descale_b = descale});
  emit(0, fill(whole(descale)));
  finish();
  const auto waits = waits_of(3);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].count, 3U) << "the GEMM comes after the cast, for its scale alone";
  const auto after = waits_of(4);
  ASSERT_EQ(after.size(), 1U) << "the scale is not written again while the GEMM may read it";
  EXPECT_EQ(after[0].stream, side);
}

TEST_F(BuilderTest, RefusesAScaleThatNothingWrote) {
  for (const int which : {0, 1, 2}) {
    const BufferId a = floats(4), missing = floats(1);
    emit(0, fill(whole(a)));
    const Matrix square{whole(a), 2};
    Gemm gemm{.m = 2, .n = 2, .k = 2, .a = square, .b = square, .d = square};
    if (which == 1) gemm.descale_a = missing;
    if (which == 2) gemm.descale_b = missing;
    const std::string error = error_of([&] { emit(0, gemm); });
    EXPECT_THAT(error, which == 0 ? HasSubstr("") : HasSubstr("nothing has written"));
    EXPECT_EQ(error.empty(), which == 0);
  }
}

TEST_F(BuilderTest, RefusesCastsThatMakeNoSense) {
  const BufferId wide = floats(8), two = floats(2), one = floats(1);
  const BufferId narrow = builder.allocate({.dtype = DType::e5m2, .count = 8});
  emit(0, fill(whole(wide)));
  const Cast good{.rows = 2,
                  .columns = 4,
                  .src = {whole(wide), 4},
                  .dst = {whole(narrow), 4},
                  .scaling = CastScale::amax,
                  .target = 57344,
                  .descale = one};
  const auto refusal = [&](const auto& change) {
    Cast bad = good;
    change(bad);
    return error_of([&] { emit(0, bad); });
  };
  EXPECT_THAT(refusal([&](Cast& c) { c.descale = two; }), HasSubstr("one f32 element"));
  EXPECT_THAT(refusal([&](Cast& c) { c.descale = no_buffer; }), HasSubstr("has a buffer"));
  EXPECT_THAT(refusal([&](Cast& c) { c.scaling = CastScale::fixed; }), HasSubstr("has a buffer"));
  EXPECT_THAT(refusal([&](Cast& c) { c.target = 0; }), HasSubstr("no target"));
  EXPECT_THAT(refusal([&](Cast& c) { c.dst = {}; }), HasSubstr("without destination"));
  EXPECT_THAT(refusal([&](Cast& c) {
                c.transposed = {whole(narrow), 3};
              }),
              HasSubstr("needs"));  // 4 rows of 2, three elements apart
  EXPECT_THAT(refusal([](Cast& /*c*/) {}), testing::IsEmpty());
}

using Write = std::function<void(Builder&, int rank, const Slice& out, const Slice& in)>;

/// Returns what the check says of two ranks along pp whose programs are as `write` has them.
std::string checked(const Write& write) {
  const mesh::Shape mesh{.pp = 2};
  ProgramSet set{.mesh = mesh, .programs = {}, .program_of_rank = {0, 1}};
  for (int rank = 0; rank < 2; ++rank) {
    Builder builder{mesh};
    const BufferId out = floats(builder, 100), in = floats(builder, 100);
    builder.emit(0, fill(builder.whole(out)));
    builder.begin(Section::step);
    write(builder, rank, builder.whole(out), builder.whole(in));
    set.programs.push_back(builder.finish());
  }
  return error_of([&] { check(set); });
}

Transfer send(const Slice& slice) {
  return {.direction = Direction::send, .axis = mesh::Axis::pp, .offset = 1, .slice = slice};
}
Transfer receive(const Slice& slice) {
  return {.direction = Direction::receive, .offset = -1, .slice = slice};
}

TEST(CheckTest, NamesMessagesThatDoNotMeet) {
  // Grouped in one exchange, sends that face each other pass.
  EXPECT_EQ(checked([](Builder& b, int, const Slice& out, const Slice& in) {
              b.emit(0, Exchange{{send(out), receive(in)}});
            }),
            "");
  EXPECT_THAT(checked([](Builder& b, int, const Slice& out, const Slice& in) {
                b.emit(0, Exchange{{send(out)}});
                b.emit(0, Exchange{{receive(in)}});
              }),
              AllOf(HasSubstr("deadlock"), HasSubstr("rank 0 at op 0, exchange"),
                    HasSubstr("send to rank 1")));
  // Each rank sends on one stream and receives on another, but issues its send first.
  EXPECT_THAT(checked([](Builder& b, int, const Slice& out, const Slice& in) {
                b.emit(b.stream("s"), Exchange{{send(out)}});
                b.emit(b.stream("r"), Exchange{{receive(in)}});
              }),
              HasSubstr("plays all streams in program order"));
  EXPECT_THAT(checked([](Builder& b, int rank, const Slice& out, const Slice& in) {
                Slice few = in;
                few.count = 99;
                b.emit(0, Exchange{{rank == 0 ? send(out) : receive(few)}});
              }),
              AllOf(HasSubstr("400 bytes"), HasSubstr("396 bytes")));
}

TEST(CheckTest, NamesCollectivesThatDifferOrLackAMember) {
  const auto said = [](const auto& change) {
    return checked([&](Builder& b, int rank, const Slice& out, const Slice& in) {
      Collective op{
          .kind = CollectiveKind::reduce, .axes = mesh::Axis::pp, .send = out, .receive = in};
      if (rank == 1) change(op);
      b.emit(0, op);
    });
  };
  EXPECT_EQ(said([](Collective&) {}), "");
  EXPECT_THAT(said([](Collective& op) { op.root = 1; }), HasSubstr("reductions or roots"));
  EXPECT_THAT(said([](Collective& op) { op.reduction = Reduction::max; }),
              HasSubstr("reductions or roots"));
  EXPECT_THAT(said([](Collective& op) { op.kind = CollectiveKind::broadcast; }),
              AllOf(HasSubstr("reduce"), HasSubstr("broadcast")));
  EXPECT_THAT(checked([](Builder& b, int rank, const Slice& out, const Slice& in) {
                if (rank > 0) return;
                b.emit(0, Collective{.axes = mesh::Axis::pp, .send = out, .receive = in});
              }),
              HasSubstr("only ranks 0 of 0, 1 are present"));
}

TEST(CheckTest, UnevenAllToAllMustAgreePairByPair) {
  const auto said = [](std::uint64_t rank1_receives) {
    return checked([&](Builder& b, int rank, Slice out, Slice in) {
      out.count = rank == 0 ? 40 : 30;
      in.count = rank == 0 ? 20 : 50;
      b.emit(0, Collective{.kind = CollectiveKind::all_to_all,
                           .axes = mesh::Axis::pp,
                           .send = out,
                           .receive = in,
                           .send_counts = rank == 0 ? std::vector<std::uint64_t>{10, 30}
                                                    : std::vector<std::uint64_t>{10, 20},
                           .receive_counts = rank == 0
                                                 ? std::vector<std::uint64_t>{10, 10}
                                                 : std::vector<std::uint64_t>{rank1_receives, 20}});
    });
  };
  EXPECT_EQ(said(30), "");
  EXPECT_THAT(said(29), HasSubstr("rank 0 sends 30 elements to rank 1, which receives 29"));
}

TEST_F(BuilderTest, ADependencyThatWasRemovedIsARace) {
  const BufferId a = floats(100), b = floats(100);
  emit(0, fill(whole(a)));
  emit(side, copy(whole(a), whole(b)));
  finish();
  program.step().ops[1].wait_count = 0;
  EXPECT_THAT(error_of([&] { check_races(program, {}); }), HasSubstr("race: op 0 (fill"));
}

TEST(FactsTest, CountsFlopTrafficAndLiveBytes) {
  const mesh::Shape mesh{.tp = 2, .dp = 4};
  Builder builder{mesh};
  builder.begin(Section::step);
  const BufferId a = floats(builder, 64, Role::activation), b = floats(builder, 64),
                 c = floats(builder, 64);
  builder.emit(0, fill(builder.whole(a)));
  builder.emit(0, fill(builder.whole(b)));
  const auto square = [&](BufferId id) {
    return Matrix{.slice = builder.whole(id), .row_stride = 8};
  };
  builder.at({.phase = Phase::forward});
  builder.emit(0, Gemm{.m = 8, .n = 8, .k = 8, .a = square(a), .b = square(b), .d = square(c)});
  builder.emit(
      0, Collective{.axes = mesh::Axis::dp, .send = builder.whole(c), .receive = builder.whole(c)});
  const BufferId gathered = floats(builder, 128);
  builder.emit(0, Collective{.kind = CollectiveKind::all_gather,
                             .axes = mesh::Axis::tp,
                             .send = builder.whole(c),
                             .receive = builder.whole(gathered)});
  const Facts facts = program::facts(builder.finish(), mesh);
  EXPECT_EQ(facts.flop.value(), 2.0 * 8 * 8 * 8);
  EXPECT_EQ(facts.flop_of_phase[static_cast<std::size_t>(Phase::forward)].value(), 1024.0);
  ASSERT_EQ(facts.traffic.size(), 2U);
  EXPECT_EQ(facts.traffic[0].bytes.value(), 64U * 4 * 2);  // tp: the gathered total
  EXPECT_EQ(facts.traffic[1].bytes.value(), 64U * 4);      // dp
  EXPECT_EQ(facts.peak_live_microbatches, 1);
  EXPECT_EQ(facts.peak_of_role[static_cast<std::size_t>(Role::activation)].value(), 256U);
}

}  // namespace
}  // namespace isoscale::program
