// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "results_fixture.hpp"

/// Read by LeakSanitizer where it is built in: HDF5 loses memory of its own on damaged files.
extern "C" const char* __lsan_default_suppressions();   // NOLINT: its name is the interface
extern "C" const char* __lsan_default_suppressions() {  // NOLINT
  return "leak:libhdf5\n";
}

namespace isoscale::results {
namespace {

class Refusal : public RunFileTest {
 protected:
  Refusal() {
    RunWriter writer = new_writer();
    writer.commit(samples::point(0));
    writer.finish(samples::header());
  }
  template <class Value>
  void set_version(const Value& version) const {
    change("", [&](hdf5::Group& root) { root.set("schema_version", version); });
  }
};

TEST_F(Refusal, OfWhatIsNoFile) {
  expect_error([&] { (void)read_run(at("none.h5")); }, {"none.h5", "no such file"});
  expect_error([&] { (void)read_run(directory_.path()); }, {"is not a file"});
}

TEST_F(Refusal, OfTruncatedFiles) {
  const std::string whole = content();
  for (const std::size_t length : {8UL, 100UL, whole.size() / 2, whole.size() - 1}) {
    SCOPED_TRACE(length);
    put(whole.substr(0, length));
    expect_refused("is not as Isoscale wrote it");
  }
  put(whole.substr(0, whole.size() / 2));
  strip();
  expect_refused("truncated or damaged");
}

TEST_F(Refusal, OfAnotherSchema) {
  set_version("2.0");
  expect_refused("version 2.0", "a newer Isoscale");
  set_version("0.9");
  expect_refused("version 0.9", "Isoscale that wrote it");
  set_version("1.x\x1b[31m");
  expect_refused("meaningless", "1.x\\x1b[31m");
  set_version(std::int64_t{1});
  expect_refused("'schema_version' has another type");
  for (const char* version : {"1.-1", "1.03", "01.3", "1.+3", "1. 3", "1.", ".3", "1", "1.3.0", "",
                              "1.99999999999", "0x1.3"}) {
    SCOPED_TRACE(version);
    set_version(version);
    expect_refused("meaningless schema_version");
  }
}

TEST_F(Refusal, IsNotOfANewerMinorSchemaWithMoreInIt) {
  set_version("1.9");
  change("", [](hdf5::Group& root) {
    root.set("later", 1.5);
    root.create_group("later_group")
        .write("later", {}, std::vector<std::string>{"x"}, {"text", "later"});
    hdf5::Group point = root.open_group("points").open_group("0000");
    point.set("later", "x");
    point.create_group("later_group");
  });
  EXPECT_EQ(read_run(file()).points.size(), 1U);
}

TEST_F(Refusal, OfPointsThatLackOrMistakeSomething) {
  using Change = std::function<void(hdf5::Group&)>;
  const auto without = [](const char* name) -> Change {
    return [name](hdf5::Group& point) { point.remove(name); };
  };
  const auto with = [](const char* name, auto value) -> Change {
    return [name, value](hdf5::Group& point) { point.set(name, value); };
  };
  const std::vector<std::string> four_texts{"1", "2", "3", "4"};
  const std::vector<double> two_by_two{1, 2, 3, 4};
  const auto texts = [&](hdf5::Group& point) {
    point.remove("flop_of_rank");
    point.write("flop_of_rank", {4}, four_texts, {"FLOP", "wrong"});
  };
  const auto table = [&](hdf5::Group& point) {
    point.remove("flop_of_rank");
    point.write("flop_of_rank", {2, 2}, std::span{two_by_two}, {"FLOP", "wrong"});
  };
  for (const auto& [why, by] : std::initializer_list<std::pair<const char*, Change>>{
           {"gemm_choices", without("gemm_choices")},
           {"step_times", without("step_times")},
           {"ops", without("ops")},
           {"", with("ranks", std::int64_t{5})},
           {"'ranks' is out of range", with("ranks", std::int64_t{1} << 40U)},
           {"negative", with("ranks", std::int64_t{-4})},
           {"the index 7", with("index", std::int64_t{7})},
           {"impossible part file", with("part_file", "../run.part0000.h5")},
           {"impossible part file", with("part_file", "/etc/passwd")},
           {"impossible part file", with("part_file", "")},
           {"'flop_of_rank' has another type", texts},
           {"'flop_of_rank' has another type", table}}) {
    write({0});
    change("points/0000", by);
    expect_refused("points/0000: ");
    expect_refused(why);
  }
}

TEST_F(Refusal, OfTablesThatContradictThemselves) {
  using Naturals = std::vector<std::uint64_t>;
  using Integers = std::vector<std::int64_t>;
  const auto refused = [&](const char* table, const char* column, const auto& values,
                           const char* why) {
    SCOPED_TRACE(column);
    write({0});
    replace(table, column, values);
    expect_refused(why);
  };
  const char* const ops = "points/0000/ops";
  refused(ops, "wait_ops", std::vector<std::uint32_t>{1, 1, 1, 9}, "ops that come after");
  refused(ops, "op_begin", Naturals{0, 1'000'000'000'000, 6}, "'op_begin' of ops is out");
  refused("points/0000/gemm_choices", "time", std::vector{1.0}, "gemm_choices differ in length");
  const char* const rows = "points/0000/rows";
  refused(rows, "wrong", Integers{0, 5, -1, -2}, "less than nothing");
  refused(rows, "wrong", Integers{0, 5}, "rows differ in length");
  refused(rows, "plays", Naturals{3, 1, 0, 0}, "do not fit");
  refused(rows, "plays", Naturals{2, 1, 1ULL << 60U, 0}, "do not fit");
  refused(rows, "time_begin", Naturals{0, 8, 1ULL << 40U, 10, 10}, "'time_begin' of rows is");
  refused(rows, "time_begin", Naturals{}, "'time_begin' of rows is");
  refused("points/0000/rows/number", "bytes", std::vector<double>{}, "rows differ in length");
  const char* const series = "points/0000/device_series";
  refused(series, "sample_begin", Naturals{0, 9, 3}, "'sample_begin' of device_series is");
  refused(series, "value", std::vector<double>{100, 500}, "device_series differ in length");
  write({0});
  replace(rows, "plays", Naturals{2, 1, 0, 0});
  replace(rows, "time_begin", Naturals{0, 8, 10, 10, 10});
  EXPECT_EQ(read_run(file()).points[0].rows, samples::rows());
}

TEST_F(Refusal, OfACalibrationThatContradictsItself) {
  RunData last = samples::header();
  last.calibration = samples::calibration();
  const auto refused = [&](const std::string& table, const char* column,
                           const std::vector<double>& values, const char* why) {
    new_writer(IfExists::overwrite).finish(last);
    replace(("calibration/" + table).c_str(), column, values);
    expect_refused(why);
  };
  refused("ceilings", "error", {1}, "calibration/ceilings differ in length");
  refused("gemms", "m", {1}, "calibration/gemms differ in length");
  refused("growth", "base", {1}, "calibration/growth differ in length");
  refused("curves", "latency", {1}, "calibration/curves differ in length");
  refused("curves", "sample_bytes", {8, 4096, 1024}, "out of order");
}

TEST_F(Refusal, OfUnknownCodesButNotOfReorderedOnes) {
  const std::vector<std::uint8_t> codes{1, 0, 2, 1, 0, 2};
  const auto rewrite = [&](std::vector<std::string> names) {
    change("points/0000/ops", [&](hdf5::Group& ops) {
      ops.remove("kind");
      ops.write("kind", {codes.size()}, std::span{codes}, {"1", "other order"}, names);
    });
  };
  rewrite({"all_reduce", "gemm", "exchange", "teleport"});
  const RunData run = read_run(file());
  EXPECT_EQ(run.points[0].outline.outlines[0].ops[0].kind, program::OpKind::gemm);
  EXPECT_EQ(run.points[0].outline.outlines[0].ops[1].kind, program::OpKind::all_reduce);
  rewrite({"all_reduce", "gemm", "teleport"});
  expect_refused("teleport");
  rewrite({"all_reduce", "gemm"});
  expect_refused("'kind' has a code");
}

TEST_F(Refusal, OfLinksToOtherFilesAndOfMoreDataThanTheFileHolds) {
  const auto other = at("other.h5");
  std::filesystem::copy_file(file(), other);
  const auto open_without_step_times = [&] {
    hdf5::FileId raw{hdf5::check(H5Fopen(file().c_str(), H5F_ACC_RDWR, H5P_DEFAULT))};
    hdf5::check(H5Ldelete(raw.get(), "points/0000/step_times", H5P_DEFAULT));
    return raw;
  };
  {
    const hdf5::FileId raw = open_without_step_times();
    hdf5::check(H5Lcreate_external(other.c_str(), "/points/0000/step_times", raw.get(),
                                   "points/0000/step_times", H5P_DEFAULT, H5P_DEFAULT));
  }
  renew_digest();
  expect_refused("'step_times' is missing");
  {
    const hdf5::FileId raw = open_without_step_times();
    // Chunks that were never written: 32 TiB on paper, nothing on disk.
    const std::array<hsize_t, 2> dims{hsize_t{1} << 40U, 4};
    const std::array<hsize_t, 2> chunk{1024, 4};
    const hdf5::SpaceId space{hdf5::check(H5Screate_simple(2, dims.data(), nullptr))};
    const hdf5::PropertyId create{hdf5::check(H5Pcreate(H5P_DATASET_CREATE))};
    hdf5::check(H5Pset_chunk(create.get(), 2, chunk.data()));
    const hdf5::DatasetId hollow{
        hdf5::check(H5Dcreate2(raw.get(), "points/0000/step_times", H5T_IEEE_F64LE, space.get(),
                               H5P_DEFAULT, create.get(), H5P_DEFAULT))};
  }
  renew_digest();
  expect_refused("'step_times' claims more data");
}

TEST_F(Refusal, OfPointsUnderAnotherNameThanTheirIndex) {
  resume().commit(samples::point(3));
  EXPECT_EQ(read_run(file()).points.size(), 2U);
  change("points/0003", [](hdf5::Group& point) { point.set("index", std::int64_t{0}); });
  expect_refused("points/0003: the index 0");
  change("points", [](hdf5::Group& points) { points.remove("0003"); });
}

using Output = RunFileTest;

void expect_no_output(const std::filesystem::path& path, Publish how,
                      const std::vector<std::string>& words) {
  expect_error([&] { check_output(path, how); }, words);
}

TEST_F(Output, RefusesPartsOfAnEarlierRun) {
  put(at("run.part0003.h5"), "precious");
  put(at("run.party.h5"), "no part");
  expect_no_output(file(), Publish::only_new, {"run.part0003.h5"});
  check_output(at("other.h5"), Publish::only_new);
}

TEST_F(Output, RefusesPlacesThatTakeNoFile) {
  put("a file");
  std::filesystem::create_symlink("nowhere", at("link.h5"));
  expect_no_output(at("no/run.h5"), Publish::only_new, {"no/run.h5", "create it"});
  expect_no_output(file() / "run.h5", Publish::only_new, {"not a directory"});
  expect_no_output(directory_.path(), Publish::replace, {"it is a directory"});
  expect_no_output(at(""), Publish::replace, {"names no file"});
  expect_no_output("/dev/null", Publish::replace, {"not a regular file"});
  expect_no_output("/proc/run.h5", Publish::only_new, {"/proc"});
  expect_no_output(at(std::string(250, 'x') + ".h5"), Publish::only_new, {"characters"});
  expect_no_output(at("link.h5"), Publish::replace, {"leads nowhere"});
  expect_error([&] { check_output(at("none/run.h5"), Publish::replace, "resume a copy"); },
               {"cannot write", "resume a copy"});
}

/// Takes away rights on other people's files while it exists, even when the tests run as root.
struct Stranger {
  const bool changed = geteuid() == 0 && seteuid(65534) == 0;  // the user nobody
  ~Stranger() { EXPECT_TRUE(!changed || seteuid(0) == 0); }
};

TEST_F(Output, RefusesADirectoryWithoutPermission) {
  ASSERT_EQ(chmod(directory_.path().c_str(), 0555), 0);
  {
    const Stranger stranger;
    expect_no_output(file(), Publish::only_new, {"Permission denied", "--output"});
  }
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
}

TEST_F(Output, RefusesToReplaceOtherPeoplesFilesWhereOnlyTheyMay) {
  if (geteuid() != 0) GTEST_SKIP() << "needs two users, so root";
  put("precious");
  ASSERT_EQ(chmod(directory_.path().c_str(), 01777), 0);
  const Stranger stranger;
  expect_no_output(file(), Publish::replace, {"belongs to somebody else"});
}

TEST_F(Output, GoesThroughALink) {
  put(at("real.h5"), "old");
  std::filesystem::create_symlink("real.h5", file());
  check_output(file(), Publish::replace);
  write({0});
  EXPECT_TRUE(std::filesystem::is_symlink(file()));
  EXPECT_EQ(read_run(at("real.h5")).points.size(), 1U);
}

TEST_F(Output, HasNoNewFileBeforeTheFirstPoint) {
  { const RunWriter writer = new_writer(); }
  RunWriter writer = new_writer();
  EXPECT_TRUE(directory_.names().empty());
  writer.commit(samples::point(0));
  EXPECT_EQ(read_run(file()).points.size(), 1U);
}

TEST_F(Output, DoesNotReplaceWhatCameIntoBeingMeanwhile) {
  RunWriter writer = new_writer();
  put("somebody else's");
  expect_error<base::Error>([&] { writer.commit(samples::point(0)); },
                            {"run.h5", "not overwritten"});
  EXPECT_EQ(content(), "somebody else's");
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

TEST_F(Output, TakesAPathRelativeToTheWorkingDirectory) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  check_output("run.h5", Publish::only_new);
  RunWriter writer{"run.h5", samples::header(), IfExists::refuse};
  std::filesystem::current_path(before);
  writer.commit(samples::point(0));
  EXPECT_EQ(read_run(file()).points.size(), 1U);
}

TEST_F(Output, FindsTooLittleRoomBeforeItChangesAnything) {
  RunWriter writer = new_writer();
  writer.commit(samples::point(0));
  const std::string before = content();
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{.rlim_cur = before.size() + 100'000, .rlim_max = old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  expect_error<base::Error>([&] { writer.commit(samples::point(1)); }, {"reserve", "too large"});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(content(), before);
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
  writer.commit(samples::point(1));
  EXPECT_EQ(read_run(file()).points.size(), 2U);
}

TEST_F(Output, SweepsTemporaryFilesOfDeadProcessesOnly) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const TemporaryFile left{directory_.path()};
    _exit(0);  // as after SIGKILL, nothing is destroyed
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ASSERT_EQ(directory_.names().size(), 1U);
  const TemporaryFile living{directory_.path()};
  put(at(".isoscale-elsewhere-99999999-0.tmp"), "of another machine");
  check_output(file(), Publish::only_new);
  EXPECT_THAT(directory_.names(), UnorderedElementsAre(".isoscale-elsewhere-99999999-0.tmp",
                                                       living.path().filename().string()));
}

}  // namespace
}  // namespace isoscale::results
