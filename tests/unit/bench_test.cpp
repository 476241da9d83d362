// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The plans of the benchmarks of collectives and their algorithms, multiplications and overlap, and
// of a calibration: sizes as nccl-tests realises them, programs that play to their end, volumes and
// work by formula, data whose sums are exact.
#include <fmt/ranges.h>

#include "program/check_races_and_matching.hpp"
#include "stack_samples.hpp"
#include "workloads/algorithms/nccl_algorithms_workload.hpp"
#include "workloads/api/nccl_algorithms_and_protocols.hpp"
#include "workloads/bench/exact_data.hpp"
#include "workloads/calibrate/calibrate.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/gemm/gemm.hpp"
#include "workloads/hybrid/hybrid.hpp"
#include "workloads/overlap/overlap.hpp"

namespace isoscale::workloads {
namespace {

using program::DType;
using testing_support::refusal;

Request request_on(int ranks, Options options) {
  return {.model = load_model("tiny"), .mesh = {.dp = ranks}, .options = std::move(options)};
}

TEST(Sizes, AreListsAndRangesAndRefusedWithoutMeaning) {
  EXPECT_THAT(parse_sizes("sizes", "8..64").bytes, ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(parse_sizes("sizes", "8..100*3").bytes, ElementsAre(8, 24, 72));
  EXPECT_THAT(parse_sizes("sizes", "1MiB,4,4..5").bytes, ElementsAre(4, 1048576));
  EXPECT_EQ(parse_sizes("sizes", "8..1GiB").bytes.size(), 28U);
  testing_support::expect_words_of<std::string>(
      {{"64..8", {"large to small"}},
       {"8..64*1", {"from 2 to"}},
       {"8..64*x", {"from 2 to"}},
       {"8,,9", {"an empty part"}},
       {"8,8", {"twice"}},
       {"0..8", {"0 bytes"}},
       {"64M", {"64M"}},
       {"..", {"sizes"}}},
      [](const auto& text) { return refusal(parse_sizes, "sizes", text); });
}

/// A default run gives integers, which wrap, few ranks, and 1000 ranks to f16 and bf16 alone.
TEST(Pattern, SumsAreExactOnAnyNumberOfRanks) {
  using enum DType;
  for (const DType type : {f64, f32, f16, bf16, e4m3, e5m2, i64, i32, i8, u8}) {
    const bool is_integer = !exact_integers(type);
    for (const int ranks : {1, 2, 3, 8, 15, 64, 257, 1000}) {
      const bool is_telling =
          is_integer ? ranks <= 64 : ranks < 1000 || type == f16 || type == bf16;
      if (!is_telling && !every_case()) continue;
      std::vector<int> all(static_cast<std::size_t>(ranks));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_NO_THROW(static_cast<void>(pattern_table(type, ranks, all, program::Reduction::sum)))
          << program::name(type) << " on " << ranks;
    }
  }
}

TEST(Pattern, NarrowSumsUseManyValuesOfTheExactIntegers) {
  EXPECT_EQ(pattern_grid(DType::f32, 8), (PatternGrid{.range = 127}));
  EXPECT_EQ(pattern_grid(DType::bf16, 8), (PatternGrid{.range = 32}));
  EXPECT_EQ(pattern_grid(DType::bf16, 256), (PatternGrid{.range = 1}));
  EXPECT_GT(pattern_grid(DType::bf16, 512).one_in, 1U);
  EXPECT_EQ(pattern_grid(DType::i8, 4096), PatternGrid{});
  using enum DType;
  EXPECT_THAT(mapped(std::array{f16, bf16, e4m3, e5m2, f32, i32}, exact_integers),
              ElementsAre(2048, 256, 16, 8, 16777216, std::nullopt));
}

using collectives::CollectiveCase;

std::vector<CollectiveCase> cases(const Request& request) {
  return collectives::cases_of(request, collectives::setting_of(request));
}

/// (count/n) & ~(16/size - 1) for operations with parts, nccl-tests 2.19.
TEST(Collectives, SizesAreRealisedLikeNcclTests) {
  for (const int ranks : {2, 3, 4, 6}) {
    for (const CollectiveCase& one : cases(request_on(
             ranks,
             "sizes=1000,4096 op=all_gather,all_reduce in_place=no types=f32,f64,u8"_options))) {
      const std::uint64_t size = program::element_size(one.type);
      if (one.operation == collectives::Operation::all_reduce) {
        EXPECT_EQ(one.bytes, one.count * size);
        continue;
      }
      const auto n = static_cast<std::uint64_t>(ranks);
      const bool is_small = one.bytes <= 1000;
      const std::uint64_t expected = ((is_small ? 1000 : 4096) / size / n) & ~(16 / size - 1);
      EXPECT_EQ(one.count, expected);
      EXPECT_EQ(one.bytes, expected * size * n);
    }
  }
}

TEST(Collectives, TypesAreChosenByTheirNames) {
  const std::span<const OptionSpec> table = collectives::option_table();
  const auto types = std::ranges::find(table, std::string_view{"types"}, &OptionSpec::key);
  ASSERT_TRUE(types != table.end());
  EXPECT_FALSE(types->choices.empty());
  for (const std::string_view choice : types->choices) {
    const Request request = request_on(2, {{"types", std::string{choice}}});
    EXPECT_EQ(
        program::name(collectives::types_of(request, collectives::values_of(request)).front()),
        choice);
  }
}

TEST(Collectives, SmallSizesWithoutAWholePartAreLeftOut) {
  const auto few = cases(request_on(4, "sizes=8..128 op=all_gather in_place=no"_options));
  ASSERT_EQ(few.size(), 2U);  // 64 and 128: 16 bytes a rank and more
  EXPECT_EQ(few.front().bytes, 64U);
}

TEST(Collectives, OptionsWithoutMeaningAreRefused) {
  const auto said = [](const Request& request) { return refusal(cases, request); };
  const auto of_two = [&](const Options& options) { return said(request_on(2, options)); };
  testing_support::expect_words_of<Options>(
      {{"root=2"_options, {"root=2", "has 2 ranks"}},
       {"axis=tp"_options, {"has no axis tp"}},
       {"op=sendrecv in_place=yes"_options, {"nothing to measure"}}},
      of_two);
  EXPECT_THAT(said(request_on(4, "op=all_gather sizes=8"_options)),
              HasSubstr("nothing to measure"));
  Request crossed = request_on(2, {});
  crossed.mesh.tp = 2;
  EXPECT_THAT(said(crossed), HasSubstr("in one row"));
}

TEST(Collectives, EveryProgramPlaysToItsEnd) {
  const Options options{{"sizes", every_case() ? "8..4KiB*8" : "8,4KiB"},
                        {"implementation", "library,ring,tree,recursive-doubling"},
                        {"reduction", "sum,max"},
                        {"groups", "both"},
                        {"rotate", "16KiB"}};
  for (const mesh::Shape& mesh : {""_mesh, "dp=2"_mesh, "dp=3"_mesh, "dp=4"_mesh, "dp=7"_mesh,
                                  "dp=8"_mesh, "tp=2,dp=2"_mesh, "tp=4,pp=2"_mesh}) {
    SCOPED_TRACE(mesh::to_string(mesh));
    Request request = request_on(1, options);
    request.mesh = mesh;
    if (mesh.tp > 1) request.options["axis"] = "tp";
    const Bench bench = collectives::hooks().build(request, 0);
    EXPECT_NO_THROW(program::check(bench.set));
    EXPECT_EQ(bench.cases.size(), bench.rows.size());
  }
}

TEST(Collectives, RowsSayWhatTheProgramsMove) {
  const Request request = request_on(4, "sizes=64..4KiB*4 rotate=1KiB reduction=sum"_options);
  const Bench bench = collectives::hooks().build(request, 0);
  for (const Case& one : bench.cases) {
    const RowSpec& row = bench.rows[one.row_begin];
    const program::Outline outline = program::outline(bench.set.of(1), one.section, request.mesh);
    ASSERT_EQ(outline.ops.size(), one.calls);
    for (const program::OutlineOp& op : outline.ops) {
      EXPECT_EQ(static_cast<double>(op.bytes), row.number.at("bytes")) << row.text.at("op");
    }
  }
}

/// Volumes a rank sends by textbook: ring all_reduce 2 (n-1)/n S, gather and scatter (n-1)/n S;
/// recursive doubling log2(n) S, its gather and scatter (n-1)/n S.
TEST(Collectives, TextbookAlgorithmsSendTheirTextbookVolume) {
  constexpr int n = 8;
  const Request request = request_on(n, {{"sizes", "4KiB"},
                                         {"op", "all_reduce,all_gather,reduce_scatter"},
                                         {"in_place", "no"},
                                         {"rotate", "4KiB"},
                                         {"implementation", "ring,recursive-doubling"}});
  const Bench bench = collectives::hooks().build(request, 0);
  ASSERT_EQ(bench.cases.size(), 6U);
  for (const Case& one : bench.cases) {
    const RowSpec& row = bench.rows[one.row_begin];
    const program::Outline outline = program::outline(bench.set.of(3), one.section, request.mesh);
    std::uint64_t sent = 0;
    for (const program::OutlineTransfer& transfer : outline.transfers) {
      if (transfer.direction == program::Direction::send) sent += transfer.bytes;
    }
    const bool is_ring = row.text.at("implementation") == "ring";
    const bool is_all_reduce = row.text.at("op") == "all_reduce";
    const double share = !is_all_reduce ? (n - 1.0) / n
                         : is_ring      ? 2 * (n - 1.0) / n
                                        : std::log2(n);
    EXPECT_EQ(static_cast<double>(sent), share * row.number.at("bytes"))
        << row.text.at("implementation") << " " << row.text.at("op");
  }
}

TEST(Collectives, AloneOnlyTheFirstGroupPlays) {
  Request request = request_on(1, "axis=tp groups=one op=all_reduce sizes=64 in_place=no"_options);
  request.mesh = {.tp = 2, .dp = 2};
  const Bench bench = collectives::hooks().build(request, 0);
  ASSERT_EQ(bench.rows.size(), 1U);
  EXPECT_THAT(bench.rows.front().ranks, ElementsAre(0, 1));
  EXPECT_FALSE(bench.set.of(1).section(bench.cases.front().section).ops.empty());
  EXPECT_TRUE(bench.set.of(2).section(bench.cases.front().section).ops.empty());
  EXPECT_TRUE(collectives::hooks().expect(request, 0, 0, 2).empty());
}

std::vector<gemm::Shape> shapes_of(const Request& request) {
  return gemm::shapes_of(request, gemm::values_of(request));
}

TEST(Shapes, AreListsAndFamilies) {
  const auto shapes =
      shapes_of(request_on(1, "shapes=powers,64x32x16,8x8x8x4 largest=512"_options));
  ASSERT_EQ(shapes.size(), 5U);  // 128, 256, 512 and the two of the list
  EXPECT_EQ(shapes[2].m, 512U);
  EXPECT_EQ(shapes[3].flop(), 2.0 * 64 * 32 * 16);
  EXPECT_EQ(shapes[3].bytes(), (64U * 16 + 16 * 32 + 64 * 32) * 4);
  EXPECT_EQ(shapes[4].batch, 4U);
  EXPECT_EQ(shapes[4].origin, "list");
}

TEST(Shapes, OfAModelAreThoseOfItsTrainingStep) {
  Request request = request_on(1, "shapes=model microbatch=2"_options);
  request.mesh = {.tp = 2};
  std::set<std::array<std::uint32_t, 4>> planned, played;
  for (const gemm::Shape& shape : shapes_of(request)) {
    planned.insert({shape.m, shape.n, shape.k, shape.batch});
  }
  Request training = request;
  training.options = "microbatch=2 microbatches=1 batch=2"_options;
  for (const auto& program : hybrid::build(training).programs) {
    for (const auto& [op, one] : all_of<program::Gemm>(program)) {
      played.insert({one->m, one->n, one->k, one->batch});
    }
  }
  EXPECT_EQ(planned, played);
  EXPECT_GT(planned.size(), 5U);
}

TEST(Shapes, WithoutMeaningAreRefused) {
  const auto said = [](const Request& request) { return refusal(shapes_of, request); };
  for (const char* const text :
       {"64x64", "64x64x64x2x2", "0x1x1", "ax1x1", "1x1x1x", "4097", "1x1x"}) {
    EXPECT_THAT(said(request_on(1, {{"shapes", text}})), HasSubstr("MxNxK")) << text;
  }
  Request narrow = request_on(1, "shapes=24x16x16"_options);
  narrow.precision = Precision::fp8;
  EXPECT_THAT(said(narrow), HasSubstr("multiples of 16"));
  Request divided = request_on(1, "shapes=model"_options);
  divided.mesh.tp = 3;
  EXPECT_NE(said(divided), "");
}

TEST(Shapes, OfFp8AreE4m3WithBothOperandsAlongK) {
  Request request = request_on(1, "shapes=64x32x16"_options);
  request.precision = Precision::fp8;
  const auto shape = shapes_of(request).front();
  EXPECT_EQ(shape.a, DType::e4m3);
  EXPECT_EQ(shape.d, DType::bf16);
  EXPECT_EQ(shape.transpose_a, program::Transpose::no);
  EXPECT_EQ(shape.transpose_b, program::Transpose::yes);
}

TEST(Gemm, ColdMultiplicationsGoThroughAllThatRotates) {
  const Request request = request_on(2, "shapes=128x128x128 rotate=1MiB cache=both"_options);
  const Bench bench = gemm::hooks().build(request, 0);
  EXPECT_NO_THROW(program::check(bench.set));
  ASSERT_EQ(bench.rows.size(), 2U);
  EXPECT_EQ(bench.rows[0].text.at("cache"), "cold");
  const auto& cold = bench.set.of(0).section(bench.cases[0].section).ops;
  std::set<std::uint64_t> places;
  for (const program::Op& op : cold)
    places.insert(std::get<program::Gemm>(op.payload).a.slice.offset);
  EXPECT_EQ(places.size(), cold.size());                  // never the same matrices
  EXPECT_GE(cold.size() * 3 * 128 * 128 * 4, 1U << 20U);  // as much memory as asked for
  EXPECT_EQ(bench.set.of(0).section(bench.cases[1].section).ops.size(), 1U);
}

TEST(Gemm, RowsSayWhatTheProgramsCompute) {
  const Bench bench = gemm::hooks().build(request_on(1, "shapes=32x16x8x2,16x16x16"_options), 0);
  for (const Case& one : bench.cases) {
    const auto outline = program::outline(bench.set.of(0), one.section, bench.set.mesh);
    EXPECT_EQ(outline.ops.size(), one.calls);
    EXPECT_EQ(outline.ops.front().flop, bench.rows[one.row_begin].number.at("flop"));
  }
}

TEST(Overlap, PlaysEachAloneAndBothOnTwoStreams) {
  for (const char* const op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
    const Request request = request_on(4, {{"shapes", "64x64x64"}, {"sizes", "4KiB"}, {"op", op}});
    const Bench bench = overlap::hooks().build(request, 0);
    EXPECT_NO_THROW(program::check(bench.set)) << op;
    ASSERT_EQ(bench.cases.size(), 3U);
    ASSERT_EQ(bench.rows.size(), 7U);
    const auto& together = bench.set.of(0).section(bench.cases[2].section).ops;
    ASSERT_EQ(together.size(), 2U);
    EXPECT_NE(together[0].stream, together[1].stream);
    EXPECT_EQ(together[0].wait_count + together[1].wait_count, 0);  // nothing orders them
    const auto outline = program::outline(bench.set.of(0), bench.cases[1].section, request.mesh);
    EXPECT_EQ(static_cast<double>(outline.ops.front().bytes), bench.rows[2].number.at("bytes"));
  }
}

/// The collective is of all ranks, in the order of their places in the group of all axes.
TEST(Overlap, ExpectsPartsByThePlaceInTheGroupOnMeshesOfSeveralAxes) {
  for (const mesh::Shape& shape : {"tp=2,dp=2"_mesh, "tp=2,pp=3"_mesh, "tp=2,cp=2,dp=2"_mesh}) {
    const auto expected = [&](const char* op, int rank) {
      Request request =
          request_on(shape.size(), {{"shapes", "64x64x64"}, {"sizes", "4800"}, {"op", op}});
      request.mesh = shape;
      return overlap::hooks().expect(request, 0, 1, rank);
    };
    const std::uint64_t part = 4800 / 4 / static_cast<std::uint64_t>(shape.size());
    for (int rank = 0; rank < shape.size(); ++rank) {
      const auto place =
          static_cast<std::uint64_t>(mesh::group_index(shape, rank, mesh::every_axis));
      const std::vector<int> members = mesh::group_members(shape, rank, mesh::every_axis);
      const std::vector<Expectation> parts = expected("all_to_all", rank);
      ASSERT_EQ(parts.size(), members.size());
      for (std::size_t other = 0; other < parts.size(); ++other) {
        EXPECT_EQ(parts[other].slice.offset, other * part);
        EXPECT_EQ(parts[other].slice.count, part);
        EXPECT_THAT(parts[other].sources, ElementsAre(members[other]));
        EXPECT_EQ(parts[other].first, place * part);
      }
      EXPECT_EQ(expected("reduce_scatter", rank).at(0).first, place * part);
    }
  }
}

TEST(Calibrate, HasMultiplicationsAndWhatTrainingCommunicates) {
  const BenchHooks hooks = calibrate::hooks();
  EXPECT_EQ(hooks.batches(request_on(1, {})), 1);
  const Request request = request_on(4, {});
  ASSERT_EQ(hooks.batches(request), 3);
  std::map<std::string, std::set<std::string>> places;  // in place or not, of each operation
  for (int batch = 0; batch < 3; ++batch) {
    const Bench bench = hooks.build(request, batch);
    EXPECT_NO_THROW(program::check(bench.set));
    for (const RowSpec& row : bench.rows) {
      const auto place = row.text.find("in_place");
      places[row.text.at("op")].insert(place == row.text.end() ? "" : place->second);
    }
  }
  EXPECT_THAT(
      places,
      ElementsAre(Pair("all_gather", ElementsAre("no")), Pair("all_reduce", ElementsAre("yes")),
                  Pair("gemm", ElementsAre("")), Pair("reduce_scatter", ElementsAre("no")),
                  Pair("sendrecv", ElementsAre("no"))));
}

using algorithms::Choice, algorithms::choices_of, algorithms::Registered;

Request request_of(int ranks, Options options) {
  options.try_emplace("sizes", "1KiB,64KiB");
  options.try_emplace("small_sizes", "64");
  options.try_emplace("rotate", "1MiB");
  return {.mesh = {.dp = ranks}, .options = std::move(options)};
}

TEST(AlgorithmsBench, ListsPairsThatExistBesideTheLibrarysChoice) {
  const auto title = [](const Choice& choice) {
    const auto operations = mapped(
        choice.measured.op, [](const auto operation) { return collectives::name(operation); });
    return fmt::format("{}/{}/{}: {}", choice.algorithm, choice.protocol, name(choice.registered),
                       fmt::join(operations, ","));
  };
  const Request request = request_of(2, {{"op", "all_gather,all_reduce"},
                                         {"algorithms", "tree,pat"},
                                         {"protocols", "ll,simple"},
                                         {"registration", "none,symmetric"}});
  EXPECT_THAT(mapped(choices_of(request), title),
              ElementsAre("//none: all_gather,all_reduce", "tree/ll/none: all_reduce",
                          "tree/simple/none: all_reduce", "pat/simple/none: all_gather",
                          "//none: all_gather,all_reduce,sendrecv",
                          "//symmetric: all_gather,all_reduce,sendrecv"));
  // All: 3 protocols of ring and tree, 5 that have one, the library's, and three registrations.
  EXPECT_EQ(choices_of(request_of(2, {})).size(), 2U * 3 + 5 + 1 + 3);
  EXPECT_THROW(std::ignore = algorithms::hooks().batches(request_of(1, {})), base::UsageError);
}

TEST(AlgorithmsBench, EverySessionHoldsTogetherAndSaysWhatItWasTold) {
  const Request request = request_of(4, {});
  const int batches = algorithms::hooks().batches(request);
  for (int batch = 0; batch < batches; ++batch) {
    const Choice choice = choices_of(request)[static_cast<std::size_t>(batch)];
    const Bench bench = algorithms::hooks().build(request, batch);
    EXPECT_NO_THROW(program::check(bench.set));
    EXPECT_EQ(bench.session.collective_algorithm, choice.algorithm);
    EXPECT_EQ(bench.session.collective_protocol, choice.protocol);
    EXPECT_EQ(bench.session.registration == program::Registration::local,
              choice.registered == Registered::local);
    for (std::size_t i = 0; i < bench.cases.size(); ++i) {
      EXPECT_FALSE(algorithms::hooks().expect(request, batch, i, 1).empty());
    }
    for (const RowSpec& row : bench.rows) {
      EXPECT_EQ(row.text.at("algorithm"), choice.algorithm.empty() ? "library" : choice.algorithm);
      EXPECT_EQ(row.text.at("registration"), name(choice.registered));
      EXPECT_EQ(row.text.at("chosen"), choice.algorithm.empty() ? "unknown" : choice.algorithm);
    }
    for (const Case& one : bench.cases) EXPECT_TRUE(one.wants_estimate);
    for (const program::Buffer& buffer : bench.set.programs.front().buffers) {
      EXPECT_EQ(buffer.space == program::Space::symmetric,
                choice.registered == Registered::symmetric);
    }
  }
}

/// The expected algorithms follow NCCL's user guide and its tuning model.
TEST(CollectiveAlgorithms, AreThoseOfNccl) {
  using enum program::CollectiveKind;
  const auto names = [](program::CollectiveKind kind) {
    std::vector<std::string_view> result;
    for (const CollectiveAlgorithm& algorithm : collective_algorithms) {
      if (algorithm.does(kind)) result.push_back(algorithm.name);
    }
    return result;
  };
  for (const auto kind : {all_gather, reduce_scatter}) {
    EXPECT_THAT(names(kind), IsSupersetOf({"pat", "nvls", "ring"}));
    for (const auto* const name : {"tree", "nvlstree", "collnetchain"}) {
      EXPECT_THAT(names(kind), Not(Contains(name)));
    }
  }
  EXPECT_THAT(names(all_reduce), Not(Contains("pat")));
  EXPECT_THAT(names(broadcast), ElementsAre("ring"));
  EXPECT_THAT(names(all_to_all), IsEmpty());
  for (const CollectiveAlgorithm& algorithm : collective_algorithms) {
    EXPECT_EQ(has_protocol(algorithm, "ll128"),
              algorithm.name == "ring" || algorithm.name == "tree");
    EXPECT_TRUE(has_protocol(algorithm, "simple"));
  }
  EXPECT_EQ(find_named(collective_algorithms, "bruck"), nullptr);
  EXPECT_EQ(find_named(collective_protocols, "LL"), nullptr);
}

}  // namespace
}  // namespace isoscale::workloads
