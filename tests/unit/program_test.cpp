// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The waits and the storage that the builder derives, the bytes of an op (those that it reads and
// writes, each operand once), and the ops and programs that are refused.

#include "made_programs.hpp"
#include "program/check_races_and_matching.hpp"
#include "program/operands.hpp"
#include "words.hpp"

namespace isoscale::program {
namespace {

using testing_support::expect_words;

std::string error_of(const auto& action) { return testing_support::refusal<base::Error>(action); }

/// A step that is written op by op on the stream 0 (compute) and on `side`.
class BuilderTest : public testing::Test {
 protected:
  BuilderTest() { builder.begin(Section::step); }

  BufferId floats(std::uint64_t count) { return program::floats(builder, count); }
  Slice whole(BufferId id) const { return builder.whole(id); }
  void emit(StreamId stream, const Payload& payload) { builder.emit(stream, payload); }
  /// Returns the waits of an op in order: a stream, and how many of its ops come before.
  auto waits_of(std::size_t op) {
    return mapped(program.step().waits_of(program.step().ops.at(op)), [](const Wait& wait) {
      return std::pair{wait.stream, wait.count};
    });
  }
  void finish() {
    program = builder.finish();
    EXPECT_NO_THROW(check_races(program, {}));
  }

  Builder builder{{}};
  const StreamId side = builder.stream("side");
  RankProgram program;
};

TEST_F(BuilderTest, DerivesTheWaitOfAReadAfterAWriteOnAnotherStream) {
  const BufferId a = floats(100), b = floats(100);
  emit(0, fill(whole(a)));
  emit(side, row_copy(whole(a), whole(b)));
  finish();
  ASSERT_EQ(program.step().ops.size(), 2U);
  EXPECT_TRUE(program.step().ops[0].awaited);
  EXPECT_THAT(waits_of(1), ElementsAre(Pair(0, 1U)));
  program.step().ops[1].wait_count = 0;
  EXPECT_THAT(error_of([&] { check_races(program, {}); }), HasSubstr("race: op 0 (fill"));
}

TEST_F(BuilderTest, RefusesMistakesOfAuthors) {
  const BufferId a = floats(10), b = floats(10);
  const auto said = [&](const Payload& op) { return error_of([&] { emit(0, op); }); };
  EXPECT_THAT(said(fill({.buffer = a, .offset = 6, .count = 5})), HasSubstr("past its buffer"));
  const Matrix square{.slice = whole(b), .row_stride = 4};
  expect_words(said(Gemm{.m = 4, .n = 4, .k = 4, .a = square, .b = square, .d = square}),
               {"needs 16 elements", "has 10"});
}

TEST(Builder, RefusesReadsOfWhatNothingHasWritten) {
  /// Returns the error of a program with these ops after the fill of half of buffer 0; buffers 0
  /// and 1 have 4 elements, 2 has one.
  const auto said = [](const std::vector<Payload>& ops) {
    Builder builder{{}};
    for (const std::uint64_t count : {4U, 4U, 1U}) {
      static_cast<void>(program::floats(builder, count));
    }
    builder.begin(Section::step);
    builder.emit(0, fill({.buffer = 0, .offset = 0, .count = 2}));
    for (const Payload& op : ops) builder.emit(0, op);
    return error_of([&] { static_cast<void>(builder.finish()); });
  };
  const Slice first{.buffer = 0, .count = 4}, second{.buffer = 1, .count = 4};
  EXPECT_THAT(said({row_copy(first, second)}),
              AllOf(HasSubstr("op 1 "), HasSubstr("nothing has written")));
  EXPECT_THAT(said({row_copy(second, first)}), HasSubstr("nothing has written"));
  const Matrix two{first, 2};
  const Gemm gemm{.m = 2, .n = 2, .k = 2, .a = two, .b = two, .d = two};
  EXPECT_EQ(said({fill(first), gemm}), "");
  for (const auto scale : {&Gemm::descale_a, &Gemm::descale_b}) {
    Gemm scaled = gemm;
    scaled.*scale = 2;
    EXPECT_THAT(said({fill(first), scaled}),
                AllOf(HasSubstr("op 2 "), HasSubstr("nothing has written")));
  }
}

TEST_F(BuilderTest, GivesTheStorageOfATemporaryToALaterBufferAfterItsLastOp) {
  const Buffer kind{.dtype = DType::f32, .count = 64};
  const BufferId first = builder.temporary(kind), second = builder.temporary(kind);
  const BufferId observed = builder.temporary(kind), stays = builder.allocate(kind);
  const BufferId last = builder.temporary(kind);
  emit(0, fill(whole(first)));
  emit(0, row_copy(whole(first), whole(observed)));
  emit(0, fill(whole(stays)));
  emit(0, fill(whole(second)));
  emit(0, row_copy(whole(second), whole(last)));
  builder.observe("observed", whole(observed), {});
  finish();
  const auto offset = [&](BufferId id) { return program.buffers[id].offset; };
  EXPECT_NE(offset(first), offset(observed));
  EXPECT_EQ(std::set({offset(stays), offset(second), offset(observed), offset(last)}).size(), 4U);
  EXPECT_EQ(program.arena_bytes[0], 4 * 256U);
}

TEST_F(BuilderTest, FollowsTheScaleOfACastToTheGemmThatReadsIt) {
  const auto dense = [&](BufferId id) { return Matrix{whole(id), 4}; };
  const BufferId wide = floats(16), product = floats(16);
  const BufferId plain = builder.allocate({.dtype = DType::e4m3, .count = 16});
  const BufferId turned = builder.allocate({.dtype = DType::e4m3, .count = 16});
  const BufferId descale = floats(1), unrelated = floats(1);
  emit(0, fill(whole(wide)));
  emit(0, fill(whole(unrelated)));
  Cast cast{.rows = 4, .columns = 4, .src = dense(wide), .dst = dense(plain)};
  cast.transposed = dense(turned);
  cast.scaling = CastScale::amax;
  cast.target = 448;
  cast.descale = descale;
  emit(0, cast);
  Gemm gemm{.m = 4, .n = 4, .k = 4, .a = dense(wide), .b = dense(wide), .d = dense(product)};
  gemm.descale_a = unrelated;
  gemm.descale_b = descale;
  emit(side, gemm);
  emit(0, fill(whole(descale)));
  finish();
  // The GEMM comes after the cast, for its scale alone, which is not written again before.
  EXPECT_THAT(waits_of(3), ElementsAre(Pair(0, 3U)));
  EXPECT_THAT(waits_of(4), ElementsAre(Pair(side, 1U)));
}

TEST_F(BuilderTest, RefusesCastsThatMakeNoSense) {
  const BufferId wide = floats(8), two = floats(2), one = floats(1);
  const BufferId narrow = builder.allocate({.dtype = DType::e5m2, .count = 8});
  emit(0, fill(whole(wide)));
  Cast good{.rows = 2, .columns = 4, .src = {whole(wide), 4}, .dst = {whole(narrow), 4}};
  good.scaling = CastScale::amax;
  good.target = 57344;
  good.descale = one;
  const auto refusal = [&](auto member, const auto& value) {
    Cast bad = good;
    bad.*member = value;
    return error_of([&] { emit(0, bad); });
  };
  EXPECT_THAT(refusal(&Cast::descale, two), HasSubstr("one f32 element"));
  EXPECT_THAT(refusal(&Cast::descale, no_buffer), HasSubstr("no buffer for the scale"));
  // 4 rows of 2, three elements apart.
  EXPECT_THAT(refusal(&Cast::transposed, Matrix{whole(narrow), 3}), HasSubstr("needs"));
  EXPECT_EQ(refusal(&Cast::rows, good.rows), "");
}

constexpr std::uint32_t rows = 6, columns = 10, batch = 3;
constexpr std::uint64_t stride = 16;

/// Buffers that have all been written.
class OpBytes : public BuilderTest {
 protected:
  Slice slice(std::uint64_t count, DType type = DType::f32) {
    const Slice made = whole(builder.allocate({.dtype = type, .count = count}));
    emit(0, Fill{.dst = made, .source = FillSource::constant});
    return made;
  }
  Matrix strided(DType type = DType::f32) {
    return {.slice = slice(batch * rows * stride, type),
            .row_stride = stride,
            .batch_stride = rows * stride};
  }
};

constexpr std::uint64_t elements = std::uint64_t{rows} * columns;

TEST_F(OpBytes, AreThoseOfEachOperandOnce) {
  const auto m = [&](DType type = DType::f32) { return strided(type); };
  Norm norm{.rows = rows, .columns = columns, .x = m(), .addend = m(), .sum = m(), .y = m()};
  norm.inverse = slice(rows);
  Rows moved{.rows = 2, .columns = columns, .each = 2, .src = m(), .dst = m()};
  moved.from = {5, 1, 5, Rows::no_row};
  Activation gelu{.kind = ActivationKind::gelu, .rows = rows, .columns = columns};
  gelu.x = m(DType::bf16);
  gelu.y = m(DType::bf16);
  const Add add{.rows = rows, .columns = columns, .a = m(), .b = m(), .dst = m()};
  Copy to_batch{.rows = rows, .columns = columns, .batch = batch, .dst = m()};
  to_batch.src = {.slice = slice(rows * stride), .row_stride = stride};
  Cast cast{.rows = rows, .columns = columns, .src = m(DType::bf16)};
  cast.dst = {.slice = slice(elements, DType::e4m3), .row_stride = columns};
  cast.transposed = {.slice = slice(elements, DType::e4m3), .row_stride = rows};
  const std::vector<std::tuple<const char*, Payload, std::uint64_t>> cases{
      {"norm that adds", norm, (4 * elements + rows) * 4},
      {"moved rows: those named and those written", moved, (3 + 2) * columns * 4},
      {"activation, by its type", gelu, 2 * elements * 2},
      {"addition, without what lies between rows", add, 3 * elements * 4},
      {"one matrix copied to a whole batch", to_batch, (1 + batch) * elements * 4},
      {"cast with both copies", cast, (2 + 1 + 1) * elements}};
  for (const auto& [what, op, bytes] : cases) emit(0, op);
  const auto ops = outline(builder.finish(), Section::step, {}).ops;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [what, payload, bytes] = cases[i];
    const OutlineOp& op = ops.at(ops.size() - cases.size() + i);
    EXPECT_EQ(op.bytes, bytes) << what;
    EXPECT_EQ(op.flop, 0) << what;
  }
}

TEST_F(OpBytes, AreNotAskedOfOpsThatAreIllFormed) {
  const Matrix x = strided();
  Matrix small = x;
  small.slice.count = rows * stride - 7;  // one short of the last row's end
  const Slice inverse = slice(rows), eight = slice(8), four = slice(4), two = slice(2);
  const Softmax short_of_one{.rows = rows, .columns = columns, .x = x, .y = small};
  const Norm norm{.rows = rows, .columns = columns, .x = x, .y = x, .inverse = inverse};
  NormGradient back{.rows = rows, .columns = columns, .dy = x, .s = x, .dx = x};
  back.inverse = inverse;
  Activation gelu{.kind = ActivationKind::gelu, .rows = rows, .columns = columns};
  gelu.x = gelu.y = x;
  const auto with = [](auto op, auto member, const auto& value) {
    op.*member = value;
    return op;
  };
  ActivationGradient halved{.kind = ActivationKind::swiglu, .rows = rows, .columns = columns};
  halved.dy = halved.x = halved.up = halved.dx = x;
  const Update sgd{.weight = eight, .gradient = eight};
  Update adam = with(sgd, &Update::optimizer, Optimizer::adam);
  adam.moment1 = adam.moment2 = eight;
  adam.powers = two;
  const Checksum checksum{.rows = rows, .columns = columns, .src = x, .sum = two};
  // Two of each four elements are kept.
  const Select select{.block = 4, .keep = 2, .src = eight, .values = four, .places = four};
  const Spread spread{.block = 4, .keep = 2, .values = four, .places = four, .dst = eight};
  const auto pair_of_rows = [&](std::uint64_t from_row_to_row) {
    return Matrix{.slice = eight, .row_stride = from_row_to_row};
  };
  Rows moved{.rows = 2, .columns = 4, .src = pair_of_rows(4), .dst = pair_of_rows(4)};
  moved.from = {1, Rows::no_row};
  const std::vector<std::pair<Payload, const char*>> cases{
      {Softmax{.rows = rows, .columns = columns, .x = x, .y = x}, "none"},
      {short_of_one, "needs 90"},
      {norm, "none"},
      {with(norm, &Norm::inverse, Slice{}), "no buffer for the inverse"},
      {with(norm, &Norm::inverse, four), "the inverse: 4 elements, not 6"},
      {with(norm, &Norm::addend, x), "no buffer for the sum"},
      {with(norm, &Norm::sum, x), "no buffer for the addend"},
      {back, "none"},
      {with(back, &NormGradient::inverse, four), "the inverse: 4 elements"},
      {gelu, "none"},
      {with(gelu, &Activation::kind, ActivationKind::swiglu), "no buffer for up"},
      {halved, "no buffer for dup"},
      {sgd, "none"},
      {with(sgd, &Update::gradient, four), "the gradient: 4 elements, not 8"},
      {with(sgd, &Update::master, four), "the master weight: 4 elements"},
      {adam, "none"},
      {with(adam, &Update::moment1, Slice{}), "no buffer for moment 1"},
      {with(adam, &Update::moment2, four), "moment 2: 4 elements"},
      {with(adam, &Update::powers, Slice{}), "no buffer for the powers"},
      {with(adam, &Update::powers, four), "elements, not 2"},
      {checksum, "none"},
      {with(checksum, &Checksum::sum, four), "the sum: 4 elements"},
      {with(checksum, &Checksum::flip, four), "the flip: 4 elements"},
      {select, "none"},
      {with(select, &Select::keep, 0U), "elements, not 0"},
      {with(select, &Select::block, 3U), "elements, not 6"},
      {with(select, &Select::values, eight), "the values: 8 elements"},
      {with(select, &Select::places, eight), "the places: 8 elements"},
      {spread, "none"},
      {with(spread, &Spread::parts, 2U), "elements, not 8"},
      {moved, "none"},
      {with(moved, &Rows::dst, pair_of_rows(5)), "needs 9"},
      {with(moved, &Rows::dst, Matrix{}), "no buffer for the destination"}};
  for (const auto& [op, why] : cases) EXPECT_THAT(mistake(op).value_or("none"), HasSubstr(why));
  EXPECT_THROW(emit(0, short_of_one), base::Error);
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

Transfer send(const Slice& slice) { return send_to(mesh::Axis::pp, 1, slice); }
Transfer receive(const Slice& slice) { return receive_from(mesh::Axis::pp, -1, slice); }

TEST(CheckTest, NamesMessagesThatDoNotMeet) {
  // Grouped in one exchange, sends that face each other pass.
  EXPECT_EQ(checked([](Builder& b, int, const Slice& out, const Slice& in) {
              b.emit(0, Exchange{{send(out), receive(in)}});
            }),
            "");
  expect_words(checked([](Builder& b, int, const Slice& out, const Slice& in) {
                 b.emit(0, Exchange{{send(out)}});
                 b.emit(0, Exchange{{receive(in)}});
               }),
               {"deadlock", "rank 0 at op 0", "exchange", "send to rank 1"});
  // Each rank sends on one stream and receives on another, but issues its send first.
  expect_words(checked([](Builder& b, int, const Slice& out, const Slice& in) {
                 b.emit(b.stream("s"), Exchange{{send(out)}});
                 b.emit(b.stream("r"), Exchange{{receive(in)}});
               }),
               {"streams in program order"});
  expect_words(checked([](Builder& b, int rank, const Slice& out, const Slice& in) {
                 Slice few = in;
                 few.count = 99;
                 b.emit(0, Exchange{{rank == 0 ? send(out) : receive(few)}});
               }),
               {"400 bytes", "396 bytes"});
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
  expect_words(said([](Collective& op) { op.send.count = op.receive.count = 99; }),
               {"ranks 0 and 1", "different collectives"});
  EXPECT_THAT(said([](Collective& op) { op.kind = CollectiveKind::broadcast; }),
              AllOf(HasSubstr("reduce"), HasSubstr("broadcast")));
  EXPECT_THAT(checked([](Builder& b, int rank, const Slice& out, const Slice& in) {
                if (rank > 0) return;
                b.emit(0, Collective{.axes = mesh::Axis::pp, .send = out, .receive = in});
              }),
              HasSubstr("only ranks 0 of"));
}

TEST(CheckTest, UnevenAllToAllMustAgreePairByPair) {
  const auto said = [](std::uint64_t rank1_receives) {
    return checked([&](Builder& b, int rank, Slice out, Slice in) {
      out.count = rank == 0 ? 40 : 30;
      in.count = rank == 0 ? 20 : 50;
      Collective op{.kind = CollectiveKind::all_to_all, .axes = mesh::Axis::pp, .send = out};
      op.receive = in;
      op.send_counts = {10, rank == 0 ? 30U : 20U};
      op.receive_counts = {rank == 0 ? 10 : rank1_receives, rank == 0 ? 10U : 20U};
      b.emit(0, op);
    });
  };
  EXPECT_EQ(said(30), "");
  expect_words(said(29), {"rank 0 sends 30", "to rank 1", "receives 29"});
}

}  // namespace
}  // namespace isoscale::program
