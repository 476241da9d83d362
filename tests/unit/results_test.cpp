// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "results/records/op_records.hpp"
#include "results/records/point_facts.hpp"
#include "tests/unit/results_fixture.hpp"

namespace isoscale::results {
namespace {

using settings::IfExists;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;

using RunFile = RunFileTest;

TEST_F(RunFile, KeepsTheHeader) {
  RunData last = samples::header();
  last.ended = "2026-01-02T03:05:00Z";
  last.complete = true;
  last.warnings = {"the clock drifts", "a second one"};
  new_writer().finish(last);
  const RunData run = read_run(file());
  expect_same(run, last);
  EXPECT_TRUE(run.complete);
  EXPECT_TRUE(run.points.empty());
  EXPECT_EQ(run.preflight, std::nullopt);
  // Facts that a rank does not have are absent, not empty.
  EXPECT_THAT(run.rank_facts.at(5).text,
              ElementsAre(Pair("cpu_model", "Some CPU"), Pair("cpu_quota", "2.0 CPUs")));
  EXPECT_THAT(run.rank_facts.at(5).number, ElementsAre(Pair("memory_total", 1e12 + 5)));
  last.preflight = samples::preflight();
  RunWriter{file(), last, IfExists::overwrite}.finish(last);
  EXPECT_EQ(read_run(file()).preflight, samples::preflight());
}

TEST_F(RunFile, KeepsAPoint) {
  const PointData wanted = samples::point(7);
  new_writer().commit(wanted);
  const RunData run = read_run(file());
  EXPECT_FALSE(run.complete);
  EXPECT_EQ(run.ended, "");
  ASSERT_EQ(run.points.size(), 1U);
  expect_same(run.points[0], wanted);
  EXPECT_EQ(run.points[0].rows, samples::rows());
  EXPECT_EQ(run.points[0].seed, 18446744073709551614U);
  EXPECT_EQ(run.points[0].looks, (Looks{.planned = 9, .made = 2, .growth = 1.5}));
}

TEST(UnitOfFact, FollowsFromItsName) {
  for (const auto& [name, unit] : {std::pair{"memory_total", "B"},
                                   {"gpu_memory_used", "B"},
                                   {"gpu_memory_clock_max", "Hz"},
                                   {"gpu_sm_clock", "Hz"},
                                   {"gpu_power_limit", "W"},
                                   {"boot_seconds", "s"},
                                   {"gpu_nvlinks", "1"},
                                   {"cores", "1"}}) {
    EXPECT_EQ(unit_of_fact(name), unit) << name;
  }
}

TEST(ChoicesOfRun, NamesEachShapeOnceAndAsFirstChosen) {
  RunData run = samples::header();
  EXPECT_THAT([&] { (void)choices_of_run(run, "old.h5"); },
              ThrowsMessage<base::UsageError>(
                  testing::AllOf(testing::StartsWith("old.h5: "), HasSubstr("--device cuda"))));
  run.points = {samples::skipped_point(0), samples::point(1), samples::point(2)};
  run.points[2].gemm_choices = {{.shape = "bf16 8x8x8 T", .algorithm = "other"},
                                {.shape = "new", .algorithm = "b1"}};
  const auto choices = choices_of_run(run, "old.h5");
  ASSERT_EQ(choices.size(), 3U);
  EXPECT_EQ(choices[1].algorithm, "a0");
  EXPECT_EQ(choices[2].shape, "new");
}

/// A file of each older schema lacks what later ones added, and is read with the defaults.
TEST_F(RunFile, OfAnOlderSchemaIsReadWithoutWhatLaterOnesAdded) {
  new_writer().commit(samples::point(0));
  const auto as_of = [&](const char* version, const char* group,
                         const std::vector<const char*>& absent) {
    change("", [&](hdf5::Group& root) { root.set("schema_version", version); });
    change(group, [&](hdf5::Group& of) {
      for (const char* const name : absent) of.remove(name);
    });
    return read_run(file()).points.at(0);
  };
  PointData point =
      as_of("1.5", "points/0000/ops", {"gemm_shape", "gemm_m", "gemm_n", "gemm_k", "gemm_batch"});
  const program::OutlineOp& gemm = point.outline.of(3).ops.at(0);
  EXPECT_EQ(gemm.flop, 2000000001.0);
  EXPECT_EQ(gemm.gemm, program::GemmShape{});
  EXPECT_EQ(point.soak, samples::point(0).soak);

  point = as_of("1.2", "points/0000", {"op_sums", "solo_times", "device_series"});
  EXPECT_EQ(point.looks, Looks{});
  EXPECT_EQ(point.soak, Soak{});
  EXPECT_EQ(point.measured_seconds, std::nullopt);
  EXPECT_TRUE(point.clock_drift.empty());
  EXPECT_EQ(point.stopped_because, "precision");

  change("points/0000", [](hdf5::Group& group) { group.set("graph", std::int64_t{1}); });
  point = as_of("1.0", "points/0000", {"gemm_choices", "communicators", "rows"});
  EXPECT_EQ(point.folded_reason, "one core");
  EXPECT_EQ(point.graph, "off");
  EXPECT_TRUE(point.gemm_choices.empty());
  EXPECT_TRUE(point.communicators.empty());
  EXPECT_TRUE(point.rows.empty());
}

TEST_F(RunFile, KeepsOpsWithWaitsAndTransfers) {
  const program::OutlineSet set = written_and_read(samples::point(0)).outline;
  EXPECT_EQ(set.mesh, (mesh::Shape{.dp = 2, .pp = 2}));
  EXPECT_THAT(set.outline_of_rank, ElementsAre(0, 0, 1, 1));
  ASSERT_EQ(set.outlines.size(), 2U);
  const program::Outline& outline = set.of(3);
  EXPECT_THAT(outline.streams, ElementsAre("compute", "dp", "pp_next"));
  ASSERT_EQ(outline.ops.size(), 3U);
  const program::OutlineOp& gemm = outline.ops[0];
  EXPECT_EQ(gemm.kind, program::OpKind::gemm);
  EXPECT_EQ(gemm.place.phase, program::Phase::backward);
  EXPECT_EQ(gemm.place.layer, 1);
  EXPECT_EQ(gemm.place.microbatch, 1);
  EXPECT_EQ(gemm.flop, 2000000001.0);
  EXPECT_EQ(gemm.bytes, 3000U);
  EXPECT_TRUE(gemm.axes.empty());
  EXPECT_EQ(gemm.gemm, (program::GemmShape{.m = 1000, .n = 500, .k = 401, .batch = 5}));
  const program::OutlineOp& reduce = outline.ops[1];
  EXPECT_EQ(reduce.kind, program::OpKind::all_reduce);
  EXPECT_EQ(reduce.stream, 1);
  EXPECT_EQ(reduce.place.layer, -1);
  EXPECT_EQ(reduce.bytes, 21474836480U);
  EXPECT_EQ(reduce.axes, mesh::AxisSet{mesh::Axis::dp});
  EXPECT_EQ(reduce.gemm, program::GemmShape{});
  ASSERT_EQ(outline.waits_of(reduce).size(), 1U);
  EXPECT_EQ(outline.waits_of(reduce)[0].stream, 0);
  EXPECT_EQ(outline.waits_of(reduce)[0].count, 1U);
  const program::OutlineOp& exchange = outline.ops[2];
  EXPECT_EQ(exchange.stream, 2);
  ASSERT_EQ(outline.waits_of(exchange).size(), 1U);
  EXPECT_EQ(outline.waits_of(exchange)[0].stream, 1);
  ASSERT_EQ(outline.transfers_of(exchange).size(), 2U);
  EXPECT_EQ(outline.transfers_of(exchange)[1].direction, program::Direction::receive);
  EXPECT_EQ(outline.transfers_of(exchange)[1].axis, mesh::Axis::pp);
  EXPECT_EQ(outline.transfers_of(exchange)[1].offset, -1);
  EXPECT_EQ(outline.transfers_of(exchange)[1].bytes, 78U);
}

TEST(StoredOps, HaveEachShapeOnceAndRefuseOnesThatAreNotThere) {
  PointData point = samples::point(0);
  program::Outline& outline = point.outline.outlines[0];
  outline.ops.push_back(outline.ops[0]);
  outline.ops.back().wait_count = 0;
  StoredOps stored = to_stored(point.outline);
  ASSERT_EQ(stored.shapes.size(), 2U);
  EXPECT_EQ(stored.shapes[1].k, 401U);
  std::vector<std::int32_t> rows;
  for (const StoredOutline& at : stored.outlines) {
    for (const StoredOp& op : at.ops) rows.push_back(op.gemm_shape);
  }
  EXPECT_THAT(rows, ElementsAre(0, -1, -1, 0, 1, -1, -1));
  stored.outlines[1].ops[0].gemm_shape = 2;
  EXPECT_THROW((void)to_outlines(stored, point.outline.mesh), base::Error);
}

TEST_F(RunFile, KeepsTracesToTheNanosecond) {
  const auto traces = written_and_read(samples::point(0)).traces;
  ASSERT_EQ(traces.size(), 2U);
  ASSERT_EQ(traces[0].ranks.size(), 2U);
  ASSERT_EQ(traces[1].ranks.size(), 1U);
  const timeline::StepTrace& trace = traces[0].ranks[1];
  EXPECT_EQ(trace.rank, 3);
  EXPECT_EQ(trace.step, 2U);
  EXPECT_EQ(trace.begin.value(), 9'000'000'000'000'000'004);
  EXPECT_EQ(trace.end.value(), 9'000'000'000'000'000'104);
  EXPECT_EQ(trace.spans, samples::trace(3, 2).spans);
}

TEST_F(RunFile, KeepsPointsThatDidNotRunAndWhatIsUnknown) {
  RunWriter writer = new_writer();
  writer.commit(samples::skipped_point(0));
  PointData failed = samples::point(1);
  failed.status = PointStatus::failed;
  failed.verified = false;
  writer.commit(failed);
  const RunData run = read_run(file());
  ASSERT_EQ(run.points.size(), 2U);
  expect_same(run.points[0], samples::skipped_point(0));
  expect_same(run.points[1], failed);
  EXPECT_EQ(run.points[0].verified, std::nullopt);
  EXPECT_TRUE(run.points[0].outline.outlines.empty());
}

TEST_F(RunFile, OrdersPointsByIndexBeyondFourDigits) {
  RunWriter writer = new_writer();
  for (const int index : {10000, 9999, 2}) writer.commit(samples::point(index));
  EXPECT_THAT(indices(read_run(file())), ElementsAre(2, 9999, 10000));
}

TEST_F(RunFile, KeepsBigSetsCompressed) {
  const PointData point = samples::point(0, 20000);  // 640 kB of step times: several chunks
  EXPECT_EQ(written_and_read(point).step_times, point.step_times);
  EXPECT_LT(std::filesystem::file_size(file()), 500'000U);
}

TEST_F(RunFile, KeepsLongTexts) {
  RunData run = samples::header();
  run.preflight = samples::preflight();
  run.preflight->facts.assign(3'000'000, 'f');  // as of thousands of ranks
  run.config_toml.assign(2'000'000, 'c');
  run.command_line.assign(100'000, 'l');
  run.warnings = {std::string(100'000, 'w')};
  RunWriter{file(), run, IfExists::refuse}.finish(run);
  const RunData found = read_run(file());
  EXPECT_TRUE(found.preflight == run.preflight);
  expect_same(found, run);
}

TEST_F(RunFile, ReplacesBytesThatAreNoText) {
  RunData header = samples::header();
  header.environment = {{"UCX_TLS", "a\xFF\xC0\xAFz"}, {"OMP_NUM_THREADS", "\xE2\x82\xAC"}};
  header.device_detail = "\xED\xA0\x80";
  RunWriter{file(), header, IfExists::refuse}.finish(header);
  const RunData run = read_run(file());
  EXPECT_EQ(run.environment[0].second, "a\uFFFD\uFFFD\uFFFDz");
  EXPECT_EQ(run.environment[1].second, "€");
  EXPECT_EQ(run.device_detail, "\uFFFD\uFFFD\uFFFD");
}

TEST_F(RunFile, RefusesAPointThatContradictsItself) {
  RunWriter writer = new_writer();
  PointData ragged = samples::point(3);
  ragged.step_times[1].pop_back();
  EXPECT_THAT([&] { writer.commit(ragged); },
              ThrowsMessage<base::Error>(
                  testing::AllOf(HasSubstr("point 3"), HasSubstr("3 entries instead of 4"))));
  PointData stray = samples::point(3);
  stray.traces[0].ranks[0].spans[0].op = 3;
  EXPECT_THAT([&] { writer.commit(stray); }, ThrowsMessage<base::Error>(HasSubstr("op 3 of 3")));
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(RunFile, RefusesAnIndexTwiceAndKeepsTheFirst) {
  RunWriter writer = new_writer();
  writer.commit(samples::point(3));
  EXPECT_THAT([&] { writer.commit(samples::skipped_point(3)); },
              ThrowsMessage<base::Error>(HasSubstr("point 3")));
  writer.commit(samples::point(4));
  const RunData run = read_run(file());
  ASSERT_EQ(run.points.size(), 2U);
  EXPECT_EQ(run.points[0].status, PointStatus::ok);
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

}  // namespace
}  // namespace isoscale::results
