// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include "base/error.hpp"
#include "tests/unit/results_fixture.hpp"

/// Read by LeakSanitizer where it is built in: HDF5 loses memory of its own on damaged files.
extern "C" const char* __lsan_default_suppressions();   // NOLINT: its name is the interface
extern "C" const char* __lsan_default_suppressions() {  // NOLINT
  return "leak:libhdf5\n";
}

namespace isoscale::results {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Refusal : public RunFileTest {
 protected:
  Refusal() {
    RunWriter writer = new_writer();
    writer.commit(samples::point(0));
    writer.finish(samples::header());
  }
  void change_root(const std::function<void(hdf5::Group&)>& by) const { change("", by); }
  /// Changes the group of the only point.
  void change_point(const std::function<void(hdf5::Group&)>& by) const {
    change("points/0000", by);
  }
};

TEST_F(Refusal, OfWhatIsNoFile) {
  EXPECT_THAT(
      [&] { (void)read_run(directory_.path() / "none.h5"); },
      ThrowsMessage<base::UsageError>(AllOf(HasSubstr("none.h5"), HasSubstr("no such file"))));
  EXPECT_THAT([&] { (void)read_run(directory_.path()); },
              ThrowsMessage<base::UsageError>(HasSubstr("is not a file")));
}

TEST_F(Refusal, OfForeignFiles) {
  put("[experiment]\nworkload = \"dp\"\n");
  expect_refused("not an HDF5 file", "give the .h5 file");
  put("");
  expect_refused("not an HDF5 file", "give the .h5 file");
  {
    hdf5::File foreign = hdf5::File::create(file());
    foreign.close();
  }
  expect_refused("Isoscale did not write it", "give the .h5 file");
}

TEST_F(Refusal, OfTruncatedFiles) {
  const std::string whole = content();
  for (const std::size_t length :
       {std::size_t{8}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
    SCOPED_TRACE(length);
    put(whole.substr(0, length));
    expect_refused("is truncated or damaged");
  }
}

TEST_F(Refusal, OfAnotherSchema) {
  change_root([](hdf5::Group& root) { root.set("schema_version", "2.0"); });
  expect_refused("schema version 2.0, and this program reads 1.x", "use a newer Isoscale");
  change_root([](hdf5::Group& root) { root.set("schema_version", "0.9"); });
  expect_refused("schema version 0.9", "use the Isoscale that wrote it");
  change_root([](hdf5::Group& root) { root.set("schema_version", "1.x\x1b[31m"); });
  EXPECT_THAT([&] { (void)read_run(file()); },
              ThrowsMessage<base::UsageError>(
                  AllOf(HasSubstr("meaningless"), testing::Not(HasSubstr("\x1b")))));
  change_root([](hdf5::Group& root) { root.set("schema_version", std::int64_t{1}); });
  expect_refused("'schema_version' has another type");
}

TEST_F(Refusal, OfVersionsThatAreNoPlainNumbers) {
  for (const char* version : {"1.-1", "1.03", "01.3", "1.+3", "1. 3", "1.", ".3", "1", "1.3.0", "",
                              "1.99999999999", "0x1.3"}) {
    SCOPED_TRACE(version);
    change_root([&](hdf5::Group& root) { root.set("schema_version", version); });
    expect_refused("the meaningless schema_version");
  }
}

TEST_F(Refusal, IsNotOfANewerMinorSchemaWithMoreInIt) {
  change_root([](hdf5::Group& root) {
    root.set("schema_version", "1.9");
    root.set("later", 1.5);
    root.create_group("later_group").write_text("later", "x", {"text", "later"});
    hdf5::Group point = root.open_group("points").open_group("0000");
    point.set("later", "x");
    point.create_group("later_group");
  });
  EXPECT_EQ(read_run(file()).points.size(), 1U);
}

TEST_F(Refusal, OfFilesThatLackWhatTheirMinorSchemaHas) {
  change_point([](hdf5::Group& point) { point.remove("gemm_choices"); });
  expect_refused("points/0000: ");
}

TEST_F(Refusal, OfTablesWhoseColumnsDifferInLength) {
  replace("points/0000/gemm_choices", "time", std::vector{1.0});
  expect_refused("the columns of gemm_choices differ in length");
}

TEST_F(Refusal, OfFilesThatLackADatasetOrAGroup) {
  change_point([](hdf5::Group& point) { point.remove("step_times"); });
  expect_refused("points/0000: dataset 'step_times' is missing");
  change_point([](hdf5::Group& point) {
    point.write_table("step_times", 0, 4, {}, {"s", "none"});
    point.remove("ops");
  });
  expect_refused("points/0000: group 'ops' is missing");
}

TEST_F(Refusal, OfAnotherTypeOrShape) {
  change_point([](hdf5::Group& point) {
    point.remove("flop_of_rank");
    point.write_texts("flop_of_rank", std::vector<std::string>{"1", "2", "3", "4"},
                      {"text", "wrong"});
  });
  expect_refused("dataset 'flop_of_rank' has another type or shape");
  change_point([](hdf5::Group& point) {
    point.remove("flop_of_rank");
    point.write_table("flop_of_rank", 2, 2, std::vector<double>{1, 2, 3, 4}, {"FLOP", "wrong"});
  });
  expect_refused("dataset 'flop_of_rank' has another type or shape");
}

TEST_F(Refusal, OfListsThatDoNotFitTogether) {
  change_point([](hdf5::Group& point) { point.set("ranks", std::int64_t{5}); });
  expect_refused("points/0000");
  change_point([](hdf5::Group& point) { point.set("ranks", std::int64_t{1} << 40U); });
  expect_refused("'ranks' is out of range");
  change_point([](hdf5::Group& point) { point.set("ranks", std::int64_t{-4}); });
  expect_refused("negative");
}

TEST_F(Refusal, OfOpsThatPointNowhere) {
  replace("points/0000/ops", "wait_ops", std::vector<std::uint32_t>{1, 1, 1, 9});
  expect_refused("waits for ops that come after it");
  replace("points/0000/ops", "op_begin", std::vector<std::uint64_t>{0, 1'000'000'000'000, 6});
  expect_refused("'op_begin' of ops is out of order");
}

TEST_F(Refusal, OfUnknownCodesButNotOfReorderedOnes) {
  const std::vector<std::uint8_t> codes{1, 0, 2, 1, 0, 2};
  const auto rewrite = [&](std::vector<std::string> names) {
    change("points/0000/ops", [&](hdf5::Group& ops) {
      ops.remove("kind");
      ops.write_codes("kind", codes, names, {"1", "other order"});
    });
  };
  rewrite({"all_reduce", "gemm", "exchange", "teleport"});
  const RunData run = read_run(file());
  EXPECT_EQ(run.points[0].outline.outlines[0].ops[0].kind, program::OpKind::gemm);
  EXPECT_EQ(run.points[0].outline.outlines[0].ops[1].kind, program::OpKind::all_reduce);
  rewrite({"all_reduce", "gemm", "teleport"});
  expect_refused("teleport");
  rewrite({"all_reduce", "gemm"});
  expect_refused("'kind' has a code whose name is unknown");
}

TEST_F(Refusal, OfLinksToOtherFiles) {
  const auto other = directory_.path() / "other.h5";
  std::filesystem::copy_file(file(), other);
  {
    const hdf5::FileId raw{hdf5::check(H5Fopen(file().c_str(), H5F_ACC_RDWR, H5P_DEFAULT))};
    hdf5::check(H5Ldelete(raw.get(), "points/0000/step_times", H5P_DEFAULT));
    hdf5::check(H5Lcreate_external(other.c_str(), "/points/0000/step_times", raw.get(),
                                   "points/0000/step_times", H5P_DEFAULT, H5P_DEFAULT));
  }
  expect_refused("dataset 'step_times' is missing");
}

TEST_F(Refusal, OfMoreDataThanTheFileHolds) {
  {
    const hdf5::FileId raw{hdf5::check(H5Fopen(file().c_str(), H5F_ACC_RDWR, H5P_DEFAULT))};
    hdf5::check(H5Ldelete(raw.get(), "points/0000/step_times", H5P_DEFAULT));
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
  expect_refused("'step_times' claims more data than the file holds");
}

TEST_F(Refusal, OfPointsUnderAnotherNameThanTheirIndex) {
  RunWriter::resume(file(), read_run(file()), {}).commit(samples::point(3));
  EXPECT_EQ(read_run(file()).points.size(), 2U);
  change_root([](hdf5::Group& root) {
    root.open_group("points").open_group("0003").set("index", std::int64_t{0});
  });
  expect_refused("points/0003: the index 0 contradicts the name");
  change_root([](hdf5::Group& root) { root.open_group("points").remove("0003"); });
  change_point([](hdf5::Group& point) { point.set("index", std::int64_t{7}); });
  expect_refused("points/0000: the index 7 contradicts the name");
}

TEST_F(Refusal, OfPartFilesElsewhere) {
  for (const char* name : {"../run.part0000.h5", "/etc/passwd", ""}) {
    change_point([&](hdf5::Group& point) { point.set("part_file", name); });
    expect_refused("impossible part file");
  }
}

/// HDF5 has no checksum for the texts of attributes and crashes or loops where they are damaged.
TEST_F(Refusal, OfDamagedHeaps) {
  const std::string whole = content();
  const std::size_t heap = whole.find("GCOL");
  ASSERT_NE(heap, std::string::npos);
  for (const std::size_t offset : {8U, 13U, 24U, 25U, 31U}) {  // sizes of the heap and of an object
    SCOPED_TRACE(offset);
    std::string damaged = whole;
    damaged[heap + offset] = static_cast<char>(damaged[heap + offset] ^ 0x40);
    put(damaged);
    expect_refused("damaged");
  }
}

TEST_F(Refusal, IsTheWorstThatDamageCanDo) {
  const std::string whole = content();
  const char* const given = std::getenv("ISOSCALE_TEST_SEED");
  std::mt19937 random{given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                                       : 1U};
  std::uniform_int_distribution<std::size_t> place{0, whole.size() - 1};
  std::uniform_int_distribution<int> bit{0, 7};
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
    for (int flips = 0; flips < 1 + round % 3; ++flips) {
      char& byte = damaged[place(random)];
      byte = static_cast<char>(byte ^ (1 << bit(random)));
    }
    put(damaged);
    try {
      (void)read_run(file());
    } catch (const base::UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("run.h5"));
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);  // most bytes have a checksum
}

}  // namespace
}  // namespace isoscale::results
