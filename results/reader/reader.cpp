// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/reader/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <new>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "results/hdf5/file_digest.hpp"
#include "results/hdf5/hdf5.hpp"
#include "results/hdf5/publish_and_lock_files.hpp"
#include "results/hdf5/run_hdf5.hpp"
#include "results/records/run_and_calibration_fields.hpp"

namespace isoscale::results {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_refusal = 1000;  ///< characters; longer error messages are cut

/// Throws base::UsageError with one sentence: the file, what is wrong with it and what to do.
template <class... Values>
[[noreturn]] void refuse(const fs::path& path, fmt::format_string<Values...> problem,
                         Values&&... values) {  // NOLINT
  throw base::UsageError(base::printable(
      fmt::format("{}: {}", path.string(), fmt::format(problem, std::forward<Values>(values)...)),
      longest_refusal));
}

constexpr std::string_view copy_again = "copy it again from where it was written";

/// Throws base::UsageError unless the path is a readable file with the signature of HDF5.
void check_kind(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    if (error && error != std::errc::no_such_file_or_directory) {
      refuse(path, "cannot be read ({}); check the path", error.message());
    }
    refuse(path, "there is no such file; check the path");
  }
  if (!fs::is_regular_file(status)) {
    refuse(path, "is not a file; give the .h5 file that isoscale run wrote");
  }
  if (!std::ifstream{path, std::ios::binary}) {
    refuse(path, "cannot be opened ({}); check its permissions",
           std::generic_category().message(errno));
  }
  if (!hdf5::File::has_signature(path)) {
    refuse(path, "is not an HDF5 file; give the .h5 file that isoscale run wrote");
  }
}

/// Returns the file's minor schema version. Throws base::UsageError if the file has no version,
/// another major version, or any text that is not MAJOR.MINOR as the writer writes it.
int check_version(const fs::path& path, const hdf5::Group& root) {
  if (!root.has_attribute("schema_version")) {
    refuse(path, "has no schema_version, so it cannot be read safely; {}", copy_again);
  }
  const std::string text = root.text("schema_version");
  int major = 0, minor = 0;
  const int parsed = std::sscanf(text.c_str(), "%9d.%9d", &major, &minor);  // NOLINT: then compared
  if (parsed != 2 || minor < 0 || text != fmt::format("{}.{}", major, minor)) {
    refuse(path, "has the meaningless schema_version '{}'; {}", text, copy_again);
  }
  if (major == schema_major) return minor;
  const std::string writer = root.has_attribute("isoscale_version")
                                 ? fmt::format(" by Isoscale {}", root.text("isoscale_version"))
                                 : std::string{};
  refuse(path, "was written{} with schema version {}, and this program reads {}.x; use {}", writer,
         text, schema_major,
         major > schema_major ? "a newer Isoscale" : "the Isoscale that wrote it");
}

/// Returns the file's minor schema version. Throws base::UsageError for HDF5 files that do not have
/// the format `wanted`, and as check_version() does.
int check_marks(const fs::path& path, const hdf5::Group& root, std::string_view wanted) {
  const std::string format = root.has_attribute("format") ? root.text("format") : "";
  if (format == part_format_name && wanted == format_name) {
    refuse(path, "is only a part of the run {}; give that file instead",
           root.has_attribute("part_of") ? root.text("part_of") : "it lies beside");
  }
  if (format != wanted) {
    refuse(path,
           "is an HDF5 file, but Isoscale did not write it; give the .h5 file that isoscale "
           "run wrote");
  }
  return check_version(path, root);
}

/// Throws base::Error unless the name of a point's group is the index that the group stores.
void check_index(const hdf5::Group& group, const std::string& name) {
  const std::int64_t index = group.get<std::int64_t>("index");
  require(name == fmt::format("{:04}", index), "the index {} contradicts the name", index);
}

class RunReader {
 public:
  /// Reads the whole run.
  RunData read(const fs::path& path) {
    const hdf5::File file = open(path);
    const hdf5::Group root = file.root();
    minor_ = check_marks(path, root, format_name);
    RunData run = get_header(root, minor_);
    run_id_ = run.id;
    // If `path` is a link, the files with the run's parts are in the folder of the file that it
    // points to.
    parts_in_ = resolved_output(path).parent_path();
    const hdf5::Group points = root.open_group("points");
    for (const std::string& name : points.names()) {
      try {
        run.points.push_back(read_point(points, name));
      } catch (const base::UsageError&) {
        throw;
      } catch (const base::Error& error) {
        throw base::Error(fmt::format("points/{}: {}", name, error.what()));
      }
    }
    std::ranges::stable_sort(run.points, {}, &PointData::index);
    return run;
  }

  std::vector<PointData> read_readable(const fs::path& path, const std::string& id,
                                       const fs::path& parts_in) {
    run_id_ = id;
    parts_in_ = parts_in;
    std::vector<PointData> result;
    as_far_as_it_goes([&] {
      const hdf5::File file = open(path);
      const hdf5::Group root = file.root();
      minor_ = check_marks(path, root, format_name);
      if (root.text("id") != id) return;
      const hdf5::Group points = root.open_group("points");
      for (const std::string& name : points.names()) {
        as_far_as_it_goes([&] { result.push_back(read_point(points, name)); });
      }
    });
    std::ranges::stable_sort(result, {}, &PointData::index);
    return result;
  }

 private:
  static void as_far_as_it_goes(const auto& read) {
    try {
      read();
    } catch (const base::Error&) {  // unreadable points are left out
    }
  }

  /// Opens a run file or part file. Throws base::UsageError for one whose digest is wrong, before
  /// HDF5 reads it: HDF5 1.10 may crash, loop or use all memory on damaged files.
  static hdf5::File open(const fs::path& path) {
    check_kind(path);
    if (digest_state(path) == DigestState::wrong) {
      refuse(
          path,
          "is not as Isoscale wrote it: its digest differs, so it was damaged in transport or "
          "changed by another program; {}, or, if it was changed on purpose, remove its digest to "
          "read it: tail -c +{} FILE > NEW",
          copy_again, digest_block_bytes + 1);
    }
    try {
      return hdf5::File::open_to_read(path);
    } catch (const hdf5::Hdf5Error& error) {
      refuse(path, "is truncated or damaged and cannot be opened ({}); {}", error.what(),
             copy_again);
    }
  }

  PointData read_point(const hdf5::Group& points, const std::string& name) {
    const hdf5::Group group = points.open_group(name);
    check_index(group, name);
    if (!group.has_attribute("part_file")) return get_point(group, minor_);
    // A part is always in the folder of its run file.
    const std::string part = group.text("part_file");
    require(!part.empty() && part.find_first_of("/\\") == std::string::npos,
            "names the impossible part file '{}'", part);
    const fs::path path = parts_in_ / part;
    const hdf5::File file = open(path);
    const hdf5::Group root = file.root();
    const int minor = check_marks(path, root, part_format_name);
    if (root.text("id") != run_id_) {
      refuse(path,
             "belongs to another run than the file that names it; copy both again from where "
             "they were written");
    }
    const hdf5::Group point = root.open_group("points").open_group(name);
    check_index(point, name);
    return get_point(point, minor);
  }

  fs::path parts_in_;  ///< the folder of the part files
  std::string run_id_;
  int minor_ = 0;  ///< minor schema version of the run file
};

}  // namespace

RunData read_run(const std::filesystem::path& path) {
  try {
    return RunReader{}.read(path);
  } catch (const base::UsageError&) {
    throw;
  } catch (const base::Error& error) {
    refuse(path, "is damaged or incomplete ({}); {}", error.what(), copy_again);
  } catch (const std::bad_alloc&) {
    refuse(path, "does not fit in memory; report it on a machine with more");
  }
}

bool may_be_run_file(const std::filesystem::path& path) {
  std::error_code absent;
  return std::filesystem::is_regular_file(path, absent) && hdf5::File::has_signature(path);
}

std::vector<PointData> readable_points(const fs::path& path, const std::string& id,
                                       const fs::path& parts_in) {
  return RunReader{}.read_readable(path, id, parts_in);
}

std::optional<std::string> run_id_of(const fs::path& path, std::string_view format) {
  try {
    std::error_code ignored;
    const bool is_plain = fs::is_regular_file(fs::symlink_status(path, ignored));
    if (!is_plain || !hdf5::File::has_signature(path)) return std::nullopt;
    if (digest_state(path) == DigestState::wrong) return std::nullopt;
    const hdf5::File file = hdf5::File::open_to_read(path);
    const hdf5::Group root = file.root();
    if (!root.has_attribute("format") || root.text("format") != format) return std::nullopt;
    return root.text("id");
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

}  // namespace isoscale::results
