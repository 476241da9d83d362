// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "results/hdf5.hpp"
#include "results/layout.hpp"
#include "results/point_tables.hpp"
#include "results/reader.hpp"
#include "results/run_files.hpp"
#include "results/writer.hpp"
#include "tests/unit/results_samples.hpp"

namespace isoscale::results {
namespace {

using config::IfExists;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class RunFile : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path file() const { return directory_.path() / "run.h5"; }
  samples::Directory directory_;
};

TEST_F(RunFile, KeepsTheHeader) {
  RunWriter writer{file(), samples::header(), IfExists::refuse};
  RunData last = samples::header();
  last.ended = "2026-01-02T03:05:00Z";
  last.complete = true;
  last.warnings = {"the clock drifts", "a second one"};
  writer.finish(last);

  const RunData run = read_run(file());
  EXPECT_EQ(run.id, "0123456789abcdef");
  EXPECT_EQ(run.created, "2026-01-02T03:04:00Z");
  EXPECT_EQ(run.ended, "2026-01-02T03:05:00Z");
  EXPECT_TRUE(run.complete);
  EXPECT_EQ(run.isoscale_version, "0.1.0");
  EXPECT_EQ(run.git_hash, "abc123");
  EXPECT_EQ(run.compiler, "GNU 12.2.0");
  EXPECT_EQ(run.build_type, "Release");
  EXPECT_EQ(run.device, "host");
  EXPECT_EQ(run.device_detail, "OpenBLAS, 1 thread");
  EXPECT_EQ(run.mpi_library, "Open MPI v4.1.4");
  EXPECT_EQ(run.command_line, "isoscale run --workload hybrid");
  EXPECT_EQ(run.config_toml, "workload = \"hybrid\"\n# größer\n");
  EXPECT_EQ(run.ranks, 6);
  EXPECT_EQ(run.nodes, 2);
  EXPECT_THAT(run.warnings, ElementsAre("the clock drifts", "a second one"));
  EXPECT_THAT(run.environment, ElementsAre(Pair("OMP_NUM_THREADS", "1"), Pair("UCX_TLS", "")));
  EXPECT_TRUE(run.points.empty());
}

TEST_F(RunFile, KeepsWhatPreflightSaid) {
  RunData run = samples::header();
  RunWriter{file(), run, IfExists::refuse}.finish(run);
  EXPECT_EQ(read_run(file()).preflight, std::nullopt);
  run.preflight = samples::preflight();
  RunWriter{file(), run, IfExists::overwrite}.finish(run);
  EXPECT_EQ(read_run(file()).preflight, samples::preflight());
}

TEST_F(RunFile, KeepsRankFactsAndWhichAreUnknown) {
  RunWriter{file(), samples::header(), IfExists::refuse}.finish(samples::header());
  const RunData run = read_run(file());
  ASSERT_EQ(run.rank_facts.size(), 6U);
  EXPECT_EQ(run.rank_facts[5].rank, 5);
  EXPECT_EQ(run.rank_facts[5].host, "node1");
  EXPECT_EQ(run.rank_facts[5].node, 1);
  EXPECT_THAT(run.rank_facts[4].text, ElementsAre(Pair("cpu_model", "Some CPU")));
  EXPECT_THAT(run.rank_facts[0].text,
              ElementsAre(Pair("cpu_model", "Some CPU"), Pair("gpu_name", "Some GPU")));
  EXPECT_THAT(run.rank_facts[0].number,
              ElementsAre(Pair("bound_cores", 2), Pair("gpu_power_limit", 700),
                          Pair("gpu_sm_clock", 1e9), Pair("memory_total", 1e12)));
  EXPECT_THAT(run.rank_facts[5].text,
              ElementsAre(Pair("cpu_model", "Some CPU"), Pair("cpu_quota", "2.0 CPUs")));
  EXPECT_THAT(run.rank_facts[4].number,
              ElementsAre(Pair("bound_cores", 2), Pair("memory_total", 1e12 + 4)));
  EXPECT_THAT(run.rank_facts[5].number, ElementsAre(Pair("memory_total", 1e12 + 5)));
}

TEST_F(RunFile, KeepsAPoint) {
  RunWriter writer{file(), samples::header(), IfExists::refuse};
  writer.commit(samples::point(7));
  const RunData run = read_run(file());
  EXPECT_FALSE(run.complete);
  EXPECT_EQ(run.ended, "");
  ASSERT_EQ(run.points.size(), 1U);
  const PointData& point = run.points[0];
  EXPECT_EQ(point.index, 7);
  EXPECT_EQ(point.workload, "hybrid");
  EXPECT_EQ(point.model, "tiny");
  EXPECT_EQ(point.dtype, "f32");
  EXPECT_EQ(point.mesh, (mesh::Shape{.dp = 2, .pp = 2}));
  EXPECT_EQ(point.ranks, 4);
  EXPECT_EQ(point.nodes, 2);
  EXPECT_EQ(point.scaling, "strong");
  EXPECT_EQ(point.placement, "packed");
  EXPECT_THAT(point.options, ElementsAre(Pair("bucket", "25MiB"), Pair("overlap", "on")));
  EXPECT_THAT(point.model_shape, ElementsAre(Pair("hidden", "64")));
  EXPECT_EQ(point.seed, 18446744073709551614U);
  EXPECT_THAT(point.labels, ElementsAre("oversubscribed"));
  EXPECT_EQ(point.status, PointStatus::ok);
  EXPECT_EQ(point.reason, "");
  EXPECT_EQ(point.verified, std::optional{true});
  EXPECT_EQ(point.verification, "outputs within 1e-15 of one rank");
  EXPECT_EQ(point.throughput_unit, "tokens/s");
  EXPECT_EQ(point.work_per_step, 4096);
  EXPECT_THAT(point.flop_of_rank, ElementsAre(1e9, 2e9, 3e9, 4e9));
  EXPECT_THAT(point.memory_of_rank, ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(point.host_memory_of_rank, ElementsAre(0, 5, 0, 5));
  EXPECT_THAT(point.peak_live_microbatches, ElementsAre(2, 2, 1, 1));
  EXPECT_THAT(point.world_rank, ElementsAre(0, 1, 4, 5));
  EXPECT_TRUE(point.folded);
  EXPECT_EQ(point.folded_reason, "one core");
  EXPECT_EQ(point.graph, "on");
  EXPECT_EQ(point.gemm_choices, samples::point(7).gemm_choices);
  EXPECT_EQ(point.communicators, samples::point(7).communicators);
  EXPECT_EQ(point.rows, samples::rows());
  EXPECT_EQ(point.warm_up_steps, 1);
  EXPECT_EQ(point.stopped_because, "precision");
  EXPECT_EQ(point.started, "2026-01-02T03:04:05Z");
  EXPECT_EQ(point.ended, "2026-01-02T03:04:06Z");
  EXPECT_THAT(point.clock_offset, ElementsAre(0, 1e-6, -1e-6, 0));
  EXPECT_THAT(point.clock_error, ElementsAre(0, 1e-7, 1e-7, 0));
  EXPECT_THAT(point.traced, ElementsAre(0, 0, 1));
  EXPECT_THAT(point.dropped, ElementsAre(0, 1, 0));
  ASSERT_EQ(point.step_times.size(), 3U);
  EXPECT_THAT(point.step_times[2],
              ElementsAre(1e-3 + 2e-6, 1e-3 + 2e-6 + 1e-9, 1e-3 + 2e-6 + 2e-9, 1e-3 + 2e-6 + 3e-9));
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
              testing::ThrowsMessage<base::UsageError>(
                  testing::AllOf(testing::StartsWith("old.h5: "), HasSubstr("--device cuda"))));
  run.points = {samples::skipped_point(0), samples::point(1), samples::point(2)};
  run.points[2].gemm_choices = {{.shape = "bf16 8x8x8 T", .algorithm = "other"},
                                {.shape = "new", .algorithm = "b1"}};
  const auto choices = choices_of_run(run, "old.h5");
  ASSERT_EQ(choices.size(), 3U);
  EXPECT_EQ(choices[1].algorithm, "a0");
  EXPECT_EQ(choices[2].shape, "new");
}

TEST_F(RunFile, OfSchema10IsReadWithoutWhat11Added) {
  RunWriter{file(), samples::header(), IfExists::refuse}.commit(samples::point(0));
  hdf5::File open = hdf5::File::open_to_change(file());
  {
    hdf5::Group root = open.root();
    root.set("schema_version", "1.0");
    hdf5::Group point = root.open_group("points").open_group("0000");
    point.set("graph", std::int64_t{1});
    point.remove("gemm_choices");
    point.remove("communicators");
    point.remove("rows");
  }
  open.close();
  const RunData run = read_run(file());
  ASSERT_EQ(run.points.size(), 1U);
  EXPECT_EQ(run.points[0].folded_reason, "one core");
  EXPECT_EQ(run.points[0].graph, "off");
  EXPECT_TRUE(run.points[0].gemm_choices.empty());
  EXPECT_TRUE(run.points[0].communicators.empty());
  EXPECT_TRUE(run.points[0].rows.empty());
}

TEST_F(RunFile, KeepsOpsWithWaitsAndTransfers) {
  RunWriter writer{file(), samples::header(), IfExists::refuse};
  writer.commit(samples::point(0));
  const RunData run = read_run(file());
  const program::OutlineSet& set = run.points.at(0).outline;
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

TEST_F(RunFile, OfSchema15IsReadWithoutTheShapesOfItsGemms) {
  RunWriter{file(), samples::header(), IfExists::refuse}.commit(samples::point(0));
  hdf5::File open = hdf5::File::open_to_change(file());
  {
    hdf5::Group root = open.root();
    root.set("schema_version", "1.5");
    hdf5::Group ops = root.open_group("points").open_group("0000").open_group("ops");
    for (const char* name : {"gemm_shape", "gemm_m", "gemm_n", "gemm_k", "gemm_batch"}) {
      ops.remove(name);
    }
  }
  open.close();
  const RunData run = read_run(file());
  const program::OutlineOp& gemm = run.points.at(0).outline.of(3).ops.at(0);
  EXPECT_EQ(gemm.flop, 2000000001.0);
  EXPECT_EQ(gemm.gemm, program::GemmShape{});
}

TEST(OpTable, HasEachShapeOnceAndRefusesOnesThatAreNotThere) {
  PointData point = samples::point(0);
  program::Outline& outline = point.outline.outlines[0];
  outline.ops.push_back(outline.ops[0]);
  outline.ops.back().wait_count = 0;
  OpTable table = to_table(point.outline);
  EXPECT_THAT(table.gemm_shape, ElementsAre(0, -1, -1, 0, 1, -1, -1));
  EXPECT_THAT(table.gemm_k, ElementsAre(400, 401));
  table.gemm_shape[4] = 2;
  EXPECT_THROW((void)to_outlines(table, point.outline.mesh), base::Error);
  table.gemm_shape.pop_back();
  EXPECT_THROW((void)to_outlines(table, point.outline.mesh), base::Error);
}

TEST_F(RunFile, KeepsTracesToTheNanosecond) {
  RunWriter writer{file(), samples::header(), IfExists::refuse};
  writer.commit(samples::point(0));
  const RunData run = read_run(file());
  const auto& traces = run.points.at(0).traces;
  ASSERT_EQ(traces.size(), 2U);
  ASSERT_EQ(traces[0].ranks.size(), 2U);
  ASSERT_EQ(traces[1].ranks.size(), 1U);
  const timeline::StepTrace& trace = traces[0].ranks[1];
  EXPECT_EQ(trace.rank, 3);
  EXPECT_EQ(trace.step, 2U);
  EXPECT_EQ(trace.begin.value(), 9'000'000'000'000'000'004);
  EXPECT_EQ(trace.end.value(), 9'000'000'000'000'000'104);
  ASSERT_EQ(trace.spans.size(), 3U);
  EXPECT_EQ(trace.spans[2].op, 2U);
  EXPECT_EQ(trace.spans[2].start.value(), 9'000'000'000'000'000'054);
  EXPECT_EQ(trace.spans[2].end.value(), 9'000'000'000'000'000'103);
}

TEST_F(RunFile, KeepsPointsThatDidNotRunAndWhatIsUnknown) {
  RunWriter writer{file(), samples::header(), IfExists::refuse};
  writer.commit(samples::skipped_point(0));
  PointData failed = samples::point(1);
  failed.status = PointStatus::failed;
  failed.verified = false;
  writer.commit(failed);
  const RunData run = read_run(file());
  ASSERT_EQ(run.points.size(), 2U);
  EXPECT_EQ(run.points[0].status, PointStatus::skipped);
  EXPECT_EQ(run.points[0].reason, "3 does not divide 8 heads");
  EXPECT_EQ(run.points[0].verified, std::nullopt);
  EXPECT_TRUE(run.points[0].step_times.empty());
  EXPECT_TRUE(run.points[0].outline.outlines.empty());
  EXPECT_EQ(run.points[1].status, PointStatus::failed);
  EXPECT_EQ(run.points[1].verified, std::optional{false});
}

TEST_F(RunFile, OrdersPointsByIndexBeyondFourDigits) {
  RunWriter writer{file(), samples::header(), IfExists::refuse};
  for (const int index : {10000, 9999, 2}) writer.commit(samples::point(index));
  std::vector<int> indices;
  for (const PointData& point : read_run(file()).points) indices.push_back(point.index);
  EXPECT_THAT(indices, ElementsAre(2, 9999, 10000));
}

TEST_F(RunFile, KeepsBigSetsCompressed) {
  PointData point = samples::point(0, 20000);  // 640 kB of step times, more than one chunk in rows
  RunWriter writer{file(), samples::header(), IfExists::refuse};
  writer.commit(point);
  EXPECT_LT(std::filesystem::file_size(file()), 500'000U);
  const RunData run = read_run(file());
  EXPECT_EQ(run.points.at(0).step_times, point.step_times);
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
  EXPECT_TRUE(found.config_toml == run.config_toml);
  EXPECT_TRUE(found.command_line == run.command_line);
  EXPECT_TRUE(found.warnings == run.warnings);
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
  RunWriter writer{file(), samples::header(), IfExists::refuse};
  PointData ragged = samples::point(3);
  ragged.step_times[1].pop_back();
  EXPECT_THAT([&] { writer.commit(ragged); },
              testing::ThrowsMessage<base::Error>(
                  testing::AllOf(HasSubstr("point 3"), HasSubstr("3 entries instead of 4"))));
  PointData stray = samples::point(3);
  stray.traces[0].ranks[0].spans[0].op = 3;
  EXPECT_THAT([&] { writer.commit(stray); },
              testing::ThrowsMessage<base::Error>(HasSubstr("op 3 of 3")));
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(RunFile, RefusesAnIndexTwiceAndKeepsTheFirst) {
  RunWriter writer{file(), samples::header(), IfExists::refuse};
  writer.commit(samples::point(3));
  EXPECT_THAT([&] { writer.commit(samples::skipped_point(3)); },
              testing::ThrowsMessage<base::Error>(HasSubstr("point 3")));
  writer.commit(samples::point(4));
  const RunData run = read_run(file());
  ASSERT_EQ(run.points.size(), 2U);
  EXPECT_EQ(run.points[0].status, PointStatus::ok);
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

}  // namespace
}  // namespace isoscale::results
