// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "results/hdf5/run_hdf5.hpp"
#include "results/records/point_facts.hpp"
#include "results_fixture.hpp"

namespace isoscale::results {
namespace {

using RunFile = RunFileTest;

TEST_F(RunFile, KeepsTheHeader) {
  RunData last = ended();
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
  const PointData& point = run.points[0];
  expect_same(point, wanted);
  EXPECT_EQ(point.rows, samples::rows());
  EXPECT_EQ(point.seed, 18446744073709551614U);
  EXPECT_EQ(point.looks, (Looks{.planned = 9, .made = 2, .growth = 1.5}));
}

/// All that the file keeps of an op, with its waits and transfers.
auto kept(const program::Outline& outline, const program::OutlineOp& op) {
  const auto waits = mapped(outline.waits_of(op), [](const program::Wait& at) {
    return std::tuple{at.stream, at.count};
  });
  const auto transfers = mapped(outline.transfers_of(op), [](const program::OutlineTransfer& at) {
    return std::tuple{at.direction, at.axis, at.offset, at.bytes};
  });
  return std::tuple{op.kind,  op.stream, op.place.phase, op.place.layer, op.place.microbatch,
                    op.flop,  op.bytes,  op.axes,        op.gemm,        waits,
                    transfers};
}

TEST_F(RunFile, KeepsOpsWithWaitsAndTransfers) {
  const program::OutlineSet set = written_and_read(samples::point(0)).outline;
  EXPECT_EQ(set.mesh, (mesh::Shape{.dp = 2, .pp = 2}));
  EXPECT_THAT(set.outline_of_rank, ElementsAre(0, 0, 1, 1));
  ASSERT_EQ(set.outlines.size(), 2U);
  for (const int stage : {0, 1}) {
    const program::Outline& read = set.of(2 * stage);
    const program::Outline wanted = samples::outline(stage);
    EXPECT_EQ(read.streams, wanted.streams);
    ASSERT_EQ(read.ops.size(), wanted.ops.size());
    for (std::size_t i = 0; i < read.ops.size(); ++i) {
      EXPECT_EQ(kept(read, read.ops[i]), kept(wanted, wanted.ops[i])) << stage << ' ' << i;
    }
  }
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

TEST_F(RunFile, KeepsACalibration) {
  RunData last = samples::header();
  RunWriter writer = new_writer();
  writer.commit(samples::point(0));
  EXPECT_EQ(read_run(file()).calibration, std::nullopt);
  // An empty one: nothing was fitted.
  for (const auto& kept : {std::optional{samples::calibration()}, std::optional{CalibrationData{}},
                           std::optional<CalibrationData>{}}) {
    last.calibration = kept;
    writer.finish(last);
    EXPECT_EQ(read_run(file()).calibration, kept);
  }
}

TEST_F(RunFile, OrdersPointsByIndexBeyondFourDigits) {
  write({10000, 9999, 2});
  EXPECT_THAT(committed(), ElementsAre(2, 9999, 10000));
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
  expect_same(read_run(file()), run);
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

TEST_F(RunFile, MayHaveNoRowsOrRowsThatLackTextsAndNumbers) {
  PointData point = samples::point(0);
  point.rows.clear();
  EXPECT_TRUE(written_and_read(point).rows.empty());
  point.rows = {
      {.text = {{"op", "gemm"}, {"cache", ""}}, .number = {{"m", 0}, {"n", std::nan("")}}}, {}};
  const RowData without_unknowns{.text = {{"op", "gemm"}}, .number = {{"m", 0}}};
  EXPECT_THAT(written_and_read(point).rows, ElementsAre(without_unknowns, RowData{}));
}

TEST_F(RunFile, HasRoomForRowsWithManyKeys) {
  PointData point = samples::point(0);
  for (int i = 0; i < 300; ++i) {
    RowData row = samples::rows()[0];
    row.text["key" + std::to_string(i)] = "some text";  // a column each
    row.number["number" + std::to_string(i)] = i;
    point.rows.push_back(row);
  }
  (void)written_and_read(point);
  EXPECT_LE(std::filesystem::file_size(file()), room_for(point));
}

// A byte that is not UTF-8 takes three bytes in the file.
TEST_F(RunFile, HasRoomForTextsThatAreNotUtf8) {
  const std::string raw(100'000, '\xFF');
  PointData point = samples::skipped_point(0);
  point.reason.clear();
  const std::uint64_t without = room_for(point);
  point.reason = raw;
  EXPECT_GE(room_for(point), without + 3 * raw.size());
  point.labels = {raw, "short"};
  (void)written_and_read(point);
  EXPECT_GE(room_for(point), without + 9 * raw.size());
  EXPECT_LE(std::filesystem::file_size(file()), room_for(point));
}

TEST_F(RunFile, RefusesAPointThatContradictsItself) {
  using Damage = std::function<void(PointData&)>;
  const auto solo = [](std::int64_t time) -> Damage {
    return [time](PointData& p) { p.solo_times[0].op[0] = units::Nanoseconds{time}; };
  };
  constexpr std::int64_t longest = std::int64_t{1} << 53;
  RunWriter writer = new_writer();
  for (const auto& [why, damage] : std::initializer_list<std::pair<const char*, Damage>>{
           {"3 entries instead of 4", [](auto& p) { p.step_times[1].pop_back(); }},
           {"op 3 of 3", [](auto& p) { p.traces[0].ranks[0].spans[0].op = 3; }},
           {"stream that does not", [](auto& p) { p.outline.outlines[0].ops[0].stream = 3; }},
           {"do not exist", [](auto& p) { p.outline.outlines[0].ops[0].wait_count = 7; }},
           {"do not exist", [](auto& p) { p.outline.outlines[0].ops[0].transfer_count = 7; }},
           {"waits for a stream", [](auto& p) { p.outline.outlines[0].waits[0].stream = 3; }},
           {"waits for no op", [](auto& p) { p.outline.outlines[0].waits[0].count = 0; }},
           {"distance", [](auto& p) { p.outline.outlines[0].transfers[0].offset = INT32_MIN; }},
           {"row of op_sums", [](auto& p) { p.op_sums[0].gemm.pop_back(); }},
           {"row of op_sums", [](auto& p) { p.op_sums[0].communication.clear(); }},
           {"of step 3 of 3", [](auto& p) { p.op_sums[0].step = 3; }},
           {"of rank 4 of 4", [](auto& p) { p.solo_times[0].rank = 4; }},
           {"row of solo_times", [](auto& p) { p.solo_times[0].op.pop_back(); }},
           {"name rank 3 twice", [](auto& p) { p.solo_times.push_back(p.solo_times[0]); }},
           {"rank 3 took -1 ns", solo(-1)},
           {"took 9007199254740993 ns", solo(longest + 1)},
           {"of rank -1 of 4", [](auto& p) { p.device_series[0].rank = -1; }},
           {"device series", [](auto& p) { p.device_series[0].value.pop_back(); }},
           {"clock_drift", [](auto& p) { p.clock_drift.pop_back(); }},
           {"rank 4 of 4", [](auto& p) { p.rows[1].ranks[0] = 4; }},
           {"rank -1 of 4", [](auto& p) { p.rows[1].ranks[0] = -1; }},
           {"rank 3 twice", [](auto& p) { p.rows[1].ranks[1] = 3; }},
           {"1 entries instead of 2", [](auto& p) { p.rows[1].times[0].pop_back(); }},
           {"2 entries instead of 4", [](auto& p) { p.rows[1].ranks.clear(); }},
           {"0 calls a play", [](auto& p) { p.rows[1].calls = 0; }},
           {"-1 wrong elements", [](auto& p) { p.rows[1].wrong = -1; }},
           {"impossible key 'a/b'", [](auto& p) { p.rows[1].text["a/b"] = "c"; }},
           {"impossible key ''", [](auto& p) { p.rows[1].number[""] = 1; }}}) {
    PointData point = samples::point(3);
    damage(point);
    expect_error<base::Error>([&] { writer.commit(point); }, {"point 3", why});
  }
  EXPECT_TRUE(directory_.names().empty());
  PointData point = samples::point(3);
  solo(longest)(point);
  EXPECT_NO_THROW(validate(point));
}

TEST(Validate, RefusesLooksThatNobodyMade) {
  const auto check = [](int planned, double growth) {
    PointData point = samples::point(0);
    point.looks = {.planned = planned, .made = 1, .growth = growth};
    validate(point);
  };
  EXPECT_NO_THROW(check(1, 1));
  EXPECT_NO_THROW(check(1000, 1000));
  for (const int planned : {0, -1, 1001}) EXPECT_THROW(check(planned, 1.5), base::Error);
  for (const double growth : {0.5, 1001.0, HUGE_VAL, std::nan("")}) {
    EXPECT_THROW(check(9, growth), base::Error);
  }
}

TEST_F(RunFile, HasEachShapeOfMultiplicationsOnce) {
  PointData point = samples::point(0);
  program::Outline& outline = point.outline.outlines[0];
  outline.ops.push_back(outline.ops[0]);
  outline.ops.back().wait_count = 0;
  point.solo_times.clear();
  const PointData read = written_and_read(point);
  EXPECT_EQ(read.outline.outlines[0].ops[3].gemm, outline.ops[0].gemm);
  EXPECT_EQ(read.outline.outlines[1].ops[0].gemm.k, 401U);
  change("points/0000/ops", [](const hdf5::Group& ops) {
    EXPECT_THAT(ops.read<std::int32_t>("gemm_shape"), ElementsAre(0, -1, -1, 0, 1, -1, -1));
    EXPECT_THAT(ops.read<std::uint32_t>("gemm_k"), ElementsAre(400, 401));
  });
}

TEST(ChoicesOfRun, NamesEachShapeOnceAndAsFirstChosen) {
  RunData run = samples::header();
  expect_error([&] { (void)choices_of_run(run, "old.h5"); }, {"old.h5: ", "--device"});
  run.points = {samples::skipped_point(0), samples::point(1), samples::point(2)};
  run.points[2].gemm_choices = {{.shape = "bf16 8x8x8 T", .algorithm = "other"},
                                {.shape = "new", .algorithm = "b1"}};
  const auto choices = choices_of_run(run, "old.h5");
  ASSERT_EQ(choices.size(), 3U);
  EXPECT_EQ(choices[1].algorithm, "a0");
  EXPECT_EQ(choices[2].shape, "new");
}

TEST(UnitOfFact, FollowsFromItsName) {
  const std::vector<std::string> facts{"gpu_memory_used", "gpu_memory_clock_max", "gpu_power_limit",
                                       "boot_seconds", "gpu_nvlinks"};
  EXPECT_THAT(mapped(facts, unit_of_fact), ElementsAre("B", "Hz", "W", "s", "1"));
}

using Parts = RunFileTest;

TEST_F(Parts, StandBesideSmallPoints) {
  // The limit leaves room for the header and one point, not for two.
  RunWriter writer = new_writer(IfExists::refuse, units::Bytes{600'000});
  writer.commit(samples::point(0));
  writer.commit(samples::point(1, 20000));
  writer.commit(samples::skipped_point(2));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5", "run.part0001.h5"));
  EXPECT_EQ(read_run(file()).points.size(), 3U);
}

TEST_F(Parts, AreFoundThroughALinkToTheRunFile) {
  const auto link = at("links/latest.h5");
  std::filesystem::create_directory(at("links"));
  std::filesystem::create_symlink("../run.h5", link);
  write({0}, parts_only);
  EXPECT_EQ(read_run(link).points.size(), 1U);
  RunWriter::resume(link, read_run(link), {}, parts_only).commit(samples::point(1));
  EXPECT_EQ(read_run(link).points.size(), 2U);
  EXPECT_THAT(directory_.names(),
              ElementsAre("links", "run.h5", "run.part0000.h5", "run.part0001.h5"));
}

TEST_F(Parts, OfAReplacedRunGoWithIt) {
  write({5}, parts_only);
  RunWriter writer{file(), another_run(), IfExists::overwrite, parts_only};
  EXPECT_EQ(read_run(file()).id, "0123456789abcdef");
  put(at("run.part0007.h5"), "of nobody");
  writer.commit(samples::point(6));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5", "run.part0006.h5", "run.part0007.h5"));
  EXPECT_EQ(read_run(file()).id, "another");
}

TEST_F(Parts, ThatAreMissingForeignOrAloneAreRefused) {
  const auto part = at("run.part0000.h5");
  write({0}, parts_only);
  expect_error([&] { (void)read_run(part); }, {"run.part0000.h5", "of the run run.h5"});
  std::filesystem::remove(part);
  expect_error([&] { (void)read_run(file()); }, {"run.part0000.h5", "no such file"});
  RunWriter{at("b.h5"), another_run(), IfExists::refuse, parts_only}.commit(samples::point(0));
  std::filesystem::rename(at("b.part0000.h5"), part);
  expect_error([&] { (void)read_run(file()); }, {"belongs to another run"});
}

using Owner = RunFileTest;

TEST_F(Owner, IsTheLaunchThatWritesUntilItEnds) {
  {
    RunWriter writer = new_writer();
    writer.commit(samples::point(0));
    for (const int index : {1, 2}) {
      expect_error([&] { (void)resume(); }, {"run.h5", "written by another launch"});
      expect_error([&] { (void)new_writer(IfExists::overwrite); }, {"written by another launch"});
      writer.commit(samples::point(index));
    }
    writer.finish(samples::header());
  }
  EXPECT_THAT(committed(), ElementsAre(0, 1, 2));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
  resume().commit(samples::point(3));
  EXPECT_THAT(committed(), ElementsAre(0, 1, 2, 3));
}

/// The file is locked from the moment that a launch resumes or is to replace it.
TEST_F(Owner, IsOneOfTwoThatResumeOrReplace) {
  write({0});
  for (const bool replaces : {false, true}) {
    const auto begin = [&] { return replaces ? new_writer(IfExists::overwrite) : resume(); };
    RunWriter first = begin();
    EXPECT_THROW((void)begin(), base::UsageError);
    first.commit(samples::point(1));
    EXPECT_THROW((void)begin(), base::UsageError);
    EXPECT_EQ(committed(), replaces ? std::vector{1} : std::vector({0, 1}));
  }
}

TEST_F(Owner, IsTheFirstOfTwoThatBeginWithoutAFile) {
  RunWriter first = new_writer(IfExists::overwrite);
  RunWriter second = new_writer(IfExists::overwrite);
  first.commit(samples::point(0));
  expect_error<base::Error>([&] { second.commit(samples::point(1)); },
                            {"another launch has written", "not overwritten"});
  EXPECT_THAT(committed(), ElementsAre(0));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

TEST_F(Owner, OfAnotherProcessIsSeenAndIsGoneWhenThatIsKilled) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RunWriter writer = new_writer();
    writer.commit(samples::point(0));
    if (::write(ends[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char written = 0;
  ASSERT_EQ(::read(ends[0], &written, 1), 1);
  EXPECT_THROW((void)resume(), base::UsageError);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  resume().commit(samples::point(1));
  EXPECT_THAT(committed(), ElementsAre(0, 1));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

TEST_F(Owner, LeavesAReadOnlyFileAlone) {
  write({0});
  const auto before = std::filesystem::last_write_time(file());
  std::filesystem::permissions(file(), std::filesystem::perms{0444});
  expect_error([&] { (void)resume(); }, {"run.h5", "read-only"});
  EXPECT_EQ(std::filesystem::last_write_time(file()), before);
  EXPECT_EQ(std::filesystem::status(file()).permissions(), std::filesystem::perms{0444});
}

TEST_F(Owner, KeepsThePermissionsOfWhatItReplaces) {
  write({0});
  for (const unsigned mode : {0600U, 0664U}) {
    std::filesystem::permissions(file(), std::filesystem::perms{mode});
    RunWriter writer = mode == 0600U ? resume() : new_writer(IfExists::overwrite);
    writer.commit(samples::point(4));
    EXPECT_EQ(std::filesystem::status(file()).permissions(), std::filesystem::perms{mode});
    writer.finish(samples::header());
    EXPECT_EQ(std::filesystem::status(file()).permissions(), std::filesystem::perms{mode});
  }
}

TEST_F(Owner, ResumesOnlyWhatItHasRead) {
  write({0});
  const RunData read = read_run(file());
  resume().commit(samples::point(1));
  expect_error([&] { (void)RunWriter::resume(file(), read, {}); }, {"changed by another launch"});
  const RunData again = read_run(file());
  resume().finish(ended());
  EXPECT_THROW((void)RunWriter::resume(file(), again, {}), base::UsageError);
  EXPECT_THAT(committed(), ElementsAre(0, 1));
}

TEST(Records, SurviveTheWayToOtherRanks) {
  const std::vector<GemmChoice> choices{{.shape = "m=1 n=2",
                                         .algorithm = "00ff",
                                         .workspace = 1 << 25,
                                         .time = 1.5e-5,
                                         .candidates = 7},
                                        {.shape = "m=3", .algorithm = "11"}};
  const auto back = [](const std::string& packed) {
    return unpacked<std::vector<GemmChoice>>(std::as_bytes(std::span{packed}));
  };
  EXPECT_EQ(back(packed(choices)), choices);
  EXPECT_THROW(std::ignore = back("one\tfield\n"), base::Error);
}

}  // namespace
}  // namespace isoscale::results
