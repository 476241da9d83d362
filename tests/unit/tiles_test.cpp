// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/check.hpp"
#include "stack_samples.hpp"
#include "tests/support/unit_costs.hpp"

/// Volumes, work and memory of tiles against formulas written out here.
namespace isoscale::workloads {
namespace {

const Workload& tiles() { return find_workload("tiles"); }

/// 16 x 24 pixels, 4 channels, 3 layers, 4 samples.
Request tiled(Options options = {}, Precision precision = Precision::f32) {
  options.merge("image=16x24 channels=4 layers=3 batch=4 bucket=1000"_options);
  return {.precision = precision, .options = std::move(options)};
}

program::ProgramSet built(const Request& base, const mesh::Shape& mesh,
                          Scaling scaling = Scaling::strong) {
  return tiles().build(tiles().scale(base, mesh, scaling));
}

/// Numbers of one rank of `tiled`, from its grid alone.
struct Expected {
  Expected(const mesh::Shape& mesh, std::uint64_t window)
      : h(16U / static_cast<unsigned>(mesh.cp)),
        w(24U / static_cast<unsigned>(mesh.tp)),
        b(4U / static_cast<unsigned>(mesh.dp)),
        k(window),
        p((window - 1) / 2) {}
  std::uint64_t h, w, b, k, p, c = 4, layers = 3, bytes = 4;

  /// Forward through every layer, backward through all but the first.
  [[nodiscard]] std::uint64_t passes() const { return 2 * layers - 1; }
  [[nodiscard]] std::uint64_t rows_of_one_side() const { return passes() * p * w * b * c * bytes; }
  [[nodiscard]] std::uint64_t columns_of_one_side() const {
    return passes() * p * (h + 2 * p) * b * c * bytes;
  }
  [[nodiscard]] std::uint64_t kernels() const { return layers * k * k * c * c * bytes; }
  [[nodiscard]] std::uint64_t padded() const { return (h + 2 * p) * (w + 2 * p) * b * c * bytes; }
};

TEST(Tiles, HaloBytesFollowTheTilesSides) {
  for (const mesh::Shape mesh :
       {"tp=2,cp=2"_mesh, "tp=4,cp=2"_mesh, "tp=2,cp=1,dp=2"_mesh, "cp=4"_mesh}) {
    for (const std::uint64_t kernel : {3U, 5U}) {
      SCOPED_TRACE(mesh::to_string(mesh));
      const Expected expected{mesh, kernel};
      const program::ProgramSet set = built(tiled({{"kernel", std::to_string(kernel)}}), mesh);
      ASSERT_EQ(set.programs.size(), 1U);
      EXPECT_EQ(sent_in(facts_of(set), program::OpKind::exchange, mesh::Axis::cp),
                mesh.cp > 1 ? 2 * expected.rows_of_one_side() : 0);
      EXPECT_EQ(sent_in(facts_of(set), program::OpKind::exchange, mesh::Axis::tp),
                mesh.tp > 1 ? 2 * expected.columns_of_one_side() : 0);
    }
  }
}

TEST(Tiles, FixedBoundariesSendNothingAcrossThem) {
  const mesh::Shape mesh{.tp = 4, .cp = 4};
  const Expected expected{mesh, 3};
  const program::ProgramSet set = built(tiled("boundary=fixed"_options), mesh);
  EXPECT_EQ(set.programs.size(), 9U);  // corners, edges, inside
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const program::Facts facts = facts_of(set, rank);
    const int column = rank % 4, row = rank / 4;  // tp varies fastest
    const auto sides = [](int at) { return at == 0 || at == 3 ? 1U : 2U; };
    EXPECT_EQ(sent_in(facts, program::OpKind::exchange, mesh::Axis::cp),
              sides(row) * expected.rows_of_one_side());
    EXPECT_EQ(sent_in(facts, program::OpKind::exchange, mesh::Axis::tp),
              sides(column) * expected.columns_of_one_side());
  }
}

TEST(Tiles, EveryGradientIsReducedOnceOverAllRanks) {
  for (const char* overlap : {"on", "off"}) {
    const mesh::Shape mesh{.tp = 2, .cp = 2, .dp = 2};
    const program::Facts facts = facts_of(built(tiled({{"overlap", overlap}}), mesh));
    const mesh::AxisSet all{mesh::Axis::tp, mesh::Axis::cp, mesh::Axis::dp};
    // A ring all-reduce over n ranks: 2 (n - 1) / n of the bytes.
    EXPECT_EQ(sent_in(facts, program::OpKind::all_reduce, all),
              2 * 7 * Expected(mesh, 3).kernels() / 8);
    const auto all_reduce =
        std::ranges::find(facts.traffic, program::OpKind::all_reduce, &program::Traffic::kind);
    EXPECT_EQ(all_reduce->calls, 2U);  // 576 bytes a layer: two fill a bucket of 1000
  }
}

TEST(Tiles, FlopIsThatOfTheConvolutionsAndOfTheZerosBetweenRows) {
  for (const Options& options :
       combinations({{"overlap", {"on", "off"}}, {"kernel", {"3", "5"}}})) {
    for (const mesh::Shape mesh : {""_mesh, "tp=2,cp=2"_mesh, "tp=3,cp=2,dp=2"_mesh}) {
      SCOPED_TRACE(testing::PrintToString(options) + mesh::to_string(mesh));
      const Expected e{mesh, std::stoul(options.at("kernel"))};
      const program::ProgramSet set = built(tiled(options), mesh);
      const std::uint64_t of_a_pixel = 2 * e.k * e.k * e.c * e.c, pixels = e.h * e.w * e.b;
      const std::uint64_t with_zeros = ((e.h - 1) * (e.w + 2 * e.p) + e.w) * e.b;
      EXPECT_EQ(flop_of(set),
                static_cast<double>(of_a_pixel * (e.passes() * pixels + e.layers * with_zeros)));
      EXPECT_EQ(flop_in(set, program::Phase::forward),
                static_cast<double>(of_a_pixel * e.layers * pixels));
    }
  }
}

TEST(Tiles, MemoryIsOneTileALayerWithItsHalo) {
  const mesh::Shape mesh{.tp = 2, .cp = 2};
  for (const char* kernel : {"3", "5"}) {
    const Expected e{mesh, kernel[0] == '3' ? 3U : 5U};
    const program::ProgramSet set = built(tiled({{"kernel", kernel}, {"optimizer", "adam"}}), mesh);
    const program::Facts facts = facts_of(set);
    const auto peak = [&](program::Role role) { return peak_of(facts, role); };
    EXPECT_EQ(peak(program::Role::input), e.padded());
    EXPECT_EQ(peak(program::Role::activation), e.layers * e.padded());
    EXPECT_EQ(peak(program::Role::weight), e.kernels());
    EXPECT_EQ(peak(program::Role::gradient), e.kernels());
    // Two columns that leave, two that come.
    EXPECT_EQ(peak(program::Role::workspace), 4 * e.columns_of_one_side() / e.passes());
    const std::uint64_t buckets = kernel[0] == '3' ? 2 : 3;
    EXPECT_EQ(peak(program::Role::optimizer), 2 * e.kernels() + buckets * 2 * e.bytes);
    EXPECT_GE(set.of(0).arena_bytes[0], facts.peak_live[0].value());
  }
}

TEST(Tiles, NarrowTypesAddTapsInAWideTile) {
  const mesh::Shape mesh{.tp = 2, .cp = 2};
  const program::ProgramSet set = built(tiled("overlap=off"_options, Precision::bf16), mesh);
  const Expected e{mesh, 3};
  const program::Facts facts = facts_of(set);
  const auto peak = [&](program::Role role) { return peak_of(facts, role); };
  EXPECT_EQ(peak(program::Role::activation), e.layers * e.padded() / 2);
  EXPECT_EQ(peak(program::Role::weight), e.kernels() / 2);
  EXPECT_EQ(peak(program::Role::master), e.kernels());
  EXPECT_EQ(peak(program::Role::gradient), e.kernels());
  EXPECT_EQ(peak(program::Role::workspace), e.h * e.w * e.b * e.c * 4);  // the tile in f32
  EXPECT_EQ(sent_in(facts, program::OpKind::exchange, mesh::Axis::cp), e.rows_of_one_side());
  std::uint64_t roundings = 0;
  for (const auto& [op, cast] : all_of<program::Cast>(set.of(0))) {
    roundings += set.of(0).buffers[cast->dst.slice.buffer].dtype == program::DType::bf16 ? 1 : 0;
  }
  EXPECT_EQ(roundings, e.passes());  // one a layer, not one a tap
}

TEST(Tiles, WeakScalingKeepsTheTileStrongScalingTheImage) {
  const mesh::Shape mesh{.tp = 2, .cp = 4, .dp = 2};
  const Request weak = tiles().scale(tiled(), mesh, Scaling::weak);
  EXPECT_EQ(weak.options.at("image"), "16x24");  // the same in all points of a curve
  EXPECT_EQ(weak.options.at("batch"), "8");
  EXPECT_EQ(tiles().work_per_step(weak), 16.0 * 24 * 4 * 16);
  const program::ProgramSet one = built(tiled("overlap=off"_options), {});
  const program::ProgramSet many = built(tiled("overlap=off"_options), mesh, Scaling::weak);
  EXPECT_EQ(facts_of(one).flop.value(), facts_of(many, 15).flop.value());
  const Request strong = tiles().scale(tiled(), mesh, Scaling::strong);
  EXPECT_EQ(tiles().work_per_step(strong), 16.0 * 24 * 4);
  EXPECT_EQ(strong.options.at("batch"), "4");
}

TEST(Tiles, NaturalGridsAreTheMostSquare) {
  std::vector<std::pair<int, int>> grids;
  for (const int ranks : {1, 2, 7, 8, 12, 64}) {
    mesh::Request request = tiles().natural_mesh(ranks);
    grids.emplace_back(request[mesh::Axis::cp], request[mesh::Axis::tp]);
  }
  EXPECT_THAT(grids,
              ElementsAre(Pair(1, 1), Pair(2, 1), Pair(7, 1), Pair(4, 2), Pair(4, 3), Pair(8, 8)));
}

TEST(Tiles, OverlapPutsEveryHaloUnderProducts) {
  for (const mesh::Shape mesh : {"tp=2,cp=2"_mesh, "cp=4"_mesh, "tp=3"_mesh}) {
    for (const char* boundary : {"periodic", "fixed"}) {
      SCOPED_TRACE(mesh::to_string(mesh) + " " + boundary);
      const Options options{{"boundary", boundary}, {"kernel", "5"}, {"image", "32x48"}};
      const program::OutlineSet outline =
          program::outline(built(tiled(options), mesh), program::Section::step);
      simulate::Costs costs = simulate::unit_costs(outline);  // and all but products one unit
      for (auto& table : costs.tables) {
        for (units::Nanoseconds& cost : table) cost = std::max(cost, units::Nanoseconds{1});
      }
      const auto plays = simulate::simulate(outline, costs);
      int exchanges = 0;
      for (int rank = 0; rank < mesh.size(); ++rank) {
        const auto kind = [&](const timeline::Span& span) {
          return outline.of(rank).ops[span.op].kind;
        };
        const auto& spans = plays[0].ranks[static_cast<std::size_t>(rank)].spans;
        for (const timeline::Span& message : spans) {
          if (kind(message) != program::OpKind::exchange) continue;
          ++exchanges;
          EXPECT_TRUE(std::ranges::any_of(spans,
                                          [&](const timeline::Span& other) {
                                            return kind(other) == program::OpKind::gemm &&
                                                   other.start < message.end &&
                                                   message.start < other.end;
                                          }))
              << "rank " << rank << " op " << message.op;
        }
      }
      const int phases = (mesh.cp > 1 ? 1 : 0) + (mesh.tp > 1 ? 1 : 0);
      EXPECT_EQ(exchanges, mesh.size() * phases * 5);
    }
  }
}

TEST(Tiles, NoGridDeadlocksOrRaces) {
  const std::vector<mesh::Shape> meshes{
      ""_mesh,          "tp=2"_mesh,  "cp=2"_mesh,  "tp=2,cp=2"_mesh,       "tp=3,cp=2"_mesh,
      "tp=8,cp=8"_mesh, "tp=64"_mesh, "cp=64"_mesh, "tp=2,cp=16,dp=2"_mesh, "tp=4,cp=4,dp=4"_mesh,
      "cp=2,dp=32"_mesh};
  for (const Options& options : combinations({{"image", {"128x192", "1920x1280"}},
                                              {"boundary", {"periodic", "fixed"}},
                                              {"overlap", {"on", "off"}},
                                              {"kernel", {"3", "5"}},
                                              {"batch", {"32"}}})) {
    for (const mesh::Shape& mesh : meshes) {
      EXPECT_NO_THROW(program::check(built(tiled(options), mesh)))
          << mesh::to_string(mesh) << testing::PrintToString(options);
    }
  }
}

TEST(Tiles, RefusalsGiveTheNumbersAndWhatWorks) {
  const std::vector<RefusedOn> cases{
      {tiled("kernel=5 image=8x32"_options),
       {.cp = 8},
       {"8 rows over cp=8", "kernel=5 reaches 2", "cp=4, or", "16 rows or more"}},
      {tiled("kernel=5 image=1"_options), {}, {"1 rows over cp=1", "2 rows or more"}},
      {tiled("batch=6"_options), {.dp = 4}, {"batch=6", "4 and 8"}},
      {tiled("image=100000"_options), {}, {"100000 x 100000", "more tiles"}},
      {tiled({}, Precision::fp8), {}, {"fp8"}}};
  for (const auto& [base, mesh, words] : cases) {
    testing_support::expect_words(
        testing_support::refusal([&] { (void)tiles().scale(base, mesh, Scaling::strong); }), words);
  }
  for (const char* image : {"0", "x", "12x", "x12", "12x13x14", "-3", "1000001", "64 "}) {
    EXPECT_THROW((void)tiles().limits(tiled({{"image", image}}), Scaling::strong), base::UsageError)
        << image;
  }
  const auto limits = tiles().limits(tiled(), Scaling::strong);
  EXPECT_TRUE(mesh::violation({.tp = 5}, limits).has_value());
  EXPECT_TRUE(mesh::violation({.cp = 3}, limits).has_value());
  EXPECT_FALSE(mesh::violation({.tp = 3, .cp = 16}, limits).has_value());
  EXPECT_TRUE(tiles().limits(tiled(), Scaling::weak).empty());
}

TEST(Tiles, TwinsAreSmallAndKeepTheGridAndTheBuckets) {
  for (const Scaling scaling : {Scaling::strong, Scaling::weak}) {
    // 147456 bytes a layer: 4 of them, 3 buckets.
    const Request base = tiled("image=4096 channels=64 layers=12 bucket=500kB"_options);
    const mesh::Shape mesh{.tp = 2, .cp = 4, .dp = 2};
    const Request twin = tiles().twin(tiles().scale(base, mesh, scaling));
    EXPECT_EQ(twin.mesh, mesh);
    const program::ProgramSet set = tiles().build(twin);
    program::check(set);
    EXPECT_LT(set.of(0).arena_bytes[0], 1U << 20);
    const int reductions = count_ops(set.of(0), [](const program::Op& op) {
      return op.place.phase == program::Phase::gradient_reduction;
    });
    EXPECT_EQ(reductions, 2);  // four layers, two in each bucket
    EXPECT_FALSE(set.of(0).observables.empty());
  }
}

}  // namespace
}  // namespace isoscale::workloads
