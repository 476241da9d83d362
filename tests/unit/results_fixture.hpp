// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>

#include <filesystem>
#include <fstream>

#include "results/hdf5/file_digest.hpp"
#include "results/hdf5/hdf5.hpp"
#include "results/reader/reader.hpp"
#include "results/records/point_fields.hpp"
#include "results/records/records_as_json_and_cbor.hpp"
#include "results/writer/writer.hpp"
#include "results_samples.hpp"
#include "tests/support/scratch_directory.hpp"
#include "words.hpp"

namespace isoscale::results {

using settings::IfExists;

inline RunData ended() {
  RunData last = samples::header();
  last.ended = "2026-01-02T03:05:00Z";
  last.complete = true;
  return last;
}
inline RunData another_run() {
  RunData other = samples::header();
  other.id = "another";
  return other;
}

/// `call` throws an Error whose sentence has all of `words`.
template <class Error = base::UsageError, class Call>
void expect_error(const Call& call, const std::vector<std::string>& words) {
  testing_support::expect_words(testing_support::usage_error<Error>(call), words);
}

/// A run file in a directory of its own, and ways to damage it.
class RunFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path at(const std::string& name) const {
    return directory_.path() / name;
  }
  [[nodiscard]] std::filesystem::path file() const { return at("run.h5"); }
  static std::string content(const std::filesystem::path& path) {
    std::ifstream in{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
  }
  [[nodiscard]] std::string content() const { return content(file()); }
  static void put(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream{path, std::ios::binary | std::ios::trunc} << bytes;
  }
  void put(std::string_view bytes) const { put(file(), bytes); }

  /// Every point of a writer with this limit goes to a part of its own.
  static constexpr units::Bytes parts_only{1};

  [[nodiscard]] RunWriter new_writer(IfExists if_exists = IfExists::refuse,
                                     units::Bytes part_limit = default_part_limit) const {
    return RunWriter{file(), samples::header(), if_exists, part_limit};
  }
  /// Commits these points to a new file and leaves it as a run does that did not end.
  void write(const std::vector<int>& points, units::Bytes part_limit = default_part_limit) const {
    RunWriter writer = new_writer(IfExists::overwrite, part_limit);
    for (const int index : points) writer.commit(samples::point(index));
  }
  [[nodiscard]] RunWriter resume(units::Bytes part_limit = default_part_limit) const {
    return RunWriter::resume(file(), read_run(file()), {}, part_limit);
  }
  /// The point as it is read from a new file that has it alone.
  [[nodiscard]] PointData written_and_read(const PointData& point) const {
    new_writer(IfExists::overwrite).commit(point);
    return read_run(file()).points.at(0);
  }
  static std::vector<int> indices(const RunData& run) {
    return mapped(run.points, &PointData::index);
  }
  [[nodiscard]] std::vector<int> committed() const { return indices(read_run(file())); }

  /// Removes the digest block, as `tail -c +513 FILE > NEW` does.
  void strip(const std::filesystem::path& path) const {
    put(path, std::string_view{content(path)}.substr(digest_block_bytes));
  }
  void strip() const { strip(file()); }
  /// Changes the root group through HDF5, as another program does: the digest is wrong then.
  void change_elsewhere(const std::function<void(hdf5::Group&)>& change) const {
    hdf5::File::open_to_change(file()).change_and_close(change);
  }
  void renew_digest() const { put_digest(Descriptor{open(file().c_str(), O_RDWR)}); }
  /// Changes a group and renews the digest, so that the reader sees the change.
  void change(const char* group, const std::function<void(hdf5::Group&)>& change) const {
    change_elsewhere([&](hdf5::Group& root) {
      if (*group == '\0') return change(root);
      hdf5::Group changed = root.open_group(group);
      change(changed);
    });
    renew_digest();
  }
  template <class Number>
  void replace(const char* group, const char* name, const std::vector<Number>& values) const {
    change(group, [&](hdf5::Group& changed) {
      changed.remove(name);
      changed.write(name, {values.size()}, std::span{values}, {"1", "wrong"});
    });
  }
  /// The reader refuses the file in a sentence that has `why` and says to copy it again, or that
  /// has another `advice`.
  void expect_refused(const char* why, const char* advice = "copy it again") const {
    expect_error([&] { (void)read_run(file()); }, {"run.h5", why, advice});
  }

  testing_support::ScratchDirectory directory_;
};

/// Both records have the same values in all fields of the file.
template <class Record>
void expect_same(const Record& a, const Record& b) {
  for_each_field(fields_of<Record>, [&](const auto& field) {
    nlohmann::json of_a, of_b;
    JsonObject into_a{of_a}, into_b{of_b};
    field.put(into_a, a, 0);
    field.put(into_b, b, 0);
    EXPECT_TRUE(of_a == of_b) << field.name;
  });
}

}  // namespace isoscale::results
