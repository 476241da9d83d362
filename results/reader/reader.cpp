// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/reader/reader.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <new>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/work_in_child_process.hpp"
#include "results/hdf5/file_digest.hpp"
#include "results/hdf5/hdf5.hpp"
#include "results/hdf5/publish_and_lock_files.hpp"
#include "results/hdf5/run_hdf5.hpp"
#include "results/reader/appended_summary.hpp"
#include "results/records/run_and_calibration_fields.hpp"

namespace isoscale::results {
namespace {

namespace fs = std::filesystem;

// The functions of this first part read files in the calling process.

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

/// Tells which files HDF5 may read in this process: those whose digest is right, or all.
enum class Accept : std::uint8_t { digest_right, all };

/// Thrown with Accept::digest_right for a run file or part file whose digest is wrong or missing.
struct DigestNotRight {};

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
  explicit RunReader(Accept accept) : accept_(accept) {}

  /// Reads the whole run. RunData::altered and the first warnings name the files whose digest is
  /// wrong.
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
    run.warnings.insert(run.warnings.begin(), altered_.begin(), altered_.end());
    run.altered = std::move(altered_);
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
    } catch (const DigestNotRight&) {
    }
  }

  hdf5::File open(const fs::path& path) {
    check_kind(path);
    const DigestState state = digest_state(path);
    if (accept_ == Accept::digest_right && state != DigestState::right) throw DigestNotRight{};
    if (state == DigestState::wrong) {
      altered_.push_back(
          fmt::format("{} is not as Isoscale wrote it: its digest differs, so it has been damaged, "
                      "or changed by another program",
                      path.filename().string()));
    }
    try {
      hdf5::File file = hdf5::File::open_to_read(path);
      if (state == DigestState::wrong && has_broken_summary(path, file.end_of_data())) {
        refuse(path, "is truncated or damaged at its end; {}", copy_again);
      }
      return file;
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

  Accept accept_;
  fs::path parts_in_;  ///< the folder of the part files
  std::string run_id_;
  int minor_ = 0;                     ///< minor schema version of the run file
  std::vector<std::string> altered_;  ///< sentences on the files whose digest is wrong
};

/// Reads a run like read_run, in this process. With Accept::digest_right, it throws DigestNotRight
/// for a file whose digest is wrong or missing, before HDF5 reads the file.
RunData read_here(const fs::path& path, Accept accept) {
  try {
    return RunReader{accept}.read(path);
  } catch (const base::UsageError&) {
    throw;
  } catch (const base::Error& error) {
    refuse(path, "is damaged or incomplete ({}); {}", error.what(), copy_again);
  } catch (const std::bad_alloc&) {
    refuse(path, "does not fit in memory; report it on a machine with more");
  }
}

/// Returns the id of the run that an HDF5 file of this format belongs to; none when it has another
/// format. Throws base::Error when it cannot be read.
std::optional<std::string> id_here(const fs::path& path, std::string_view format) {
  const hdf5::File file = hdf5::File::open_to_read(path);
  const hdf5::Group root = file.root();
  if (!root.has_attribute("format") || root.text("format") != format) return std::nullopt;
  return root.text("id");
}

// The functions of this second part read files without a right digest in a separate process, with
// limits on memory and time: on damaged files, HDF5 1.10 may crash, loop or use all memory. That
// process writes the run that it has read to a temporary file in the usual format, so that in this
// process HDF5 reads only files that Isoscale has written and whose digest is right.

constexpr units::Bytes least_memory{std::uint64_t{1} << 30U};
/// The limit on memory grows by this many bytes for each byte of the files. Unpacked columns and
/// the records that are made from them need it.
constexpr std::uint64_t memory_per_byte = 8;
/// The separate process may use one second of CPU time for each of this many bytes of the files,
/// and one second more.
constexpr std::uint64_t bytes_per_second = std::uint64_t{8} << 20U;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int slowdown = 10;  ///< allows more CPU time for code under a sanitizer
#else
constexpr int slowdown = 1;
#endif

/// The separate process answers with `refused` and an error message, or with `read_well` and either
/// the id (id_apart()) or the sentences of RunData::altered, each followed by `end_of_sentence`.
constexpr char read_well = 'r', refused = 'n', end_of_sentence = '\0';

base::Limits limits_for(const fs::path& path) {
  std::error_code ignored;
  std::uint64_t bytes = fs::file_size(path, ignored);
  if (ignored) bytes = 0;
  for (const fs::path& part : existing_parts(resolved_output(path))) {
    const std::uint64_t more = fs::file_size(part, ignored);
    if (!ignored) bytes += more;
  }
  const std::chrono::seconds cpu_time{slowdown * (1 + bytes / bytes_per_second)};
  constexpr std::chrono::seconds slow_disk{60};
  const units::Bytes memory = least_memory + units::Bytes{memory_per_byte * bytes};
  return {.memory = memory.value(), .cpu_time = cpu_time, .wall_time = slow_disk + 10 * cpu_time};
}

/// Writes a whole run, with the points of its part files, to one new file.
void write_copy(const TemporaryFile& copy, const RunData& run) {
  hdf5::File::create(copy.path()).change_and_close([&](hdf5::Group& root) {
    put_marks(root, format_name);
    put_header(root, run);
    for (const PointData& point : run.points) put_point(root, point);
  });
  put_digest(copy.descriptor());
}

/// Does the work of the separate process; returns its answer.
std::string read_and_copy(const fs::path& path, const TemporaryFile& copy) noexcept {
  try {
    const RunData run = read_here(path, Accept::all);
    write_copy(copy, run);
    std::string answer{read_well};
    for (const std::string& sentence : run.altered) answer += sentence + end_of_sentence;
    return answer;
  } catch (const base::UsageError& error) {
    return refused + std::string{error.what()};
  } catch (const std::exception& error) {
    return refused +
           fmt::format("{}: cannot be read ({}); {}", path.string(), error.what(), copy_again);
  }
}

[[noreturn]] void refuse_after(const fs::path& path, std::string_view ended) {
  refuse(path, "reading it ended in {}; it may be damaged: {}", ended, copy_again);
}

/// Reads the copy that the separate process has written. `altered` is what it answered after
/// `read_well`.
RunData read_copy(const fs::path& path, const TemporaryFile& copy, const std::string& altered) {
  try {
    RunData run = read_here(copy.path(), Accept::digest_right);
    std::istringstream sentences{altered};
    for (std::string sentence; std::getline(sentences, sentence, end_of_sentence);) {
      run.altered.push_back(sentence);
    }
    return run;
  } catch (const DigestNotRight&) {
    refuse_after(path, "a copy that is not whole");
  } catch (const std::exception& error) {
    refuse_after(path, fmt::format("a copy that cannot be read ({})", error.what()));
  }
}

/// Returns the folder of temporary files, and removes files of killed processes there.
fs::path folder_for_copies(const fs::path& path) {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) {
    refuse(path, "cannot be read without a folder for temporary files ({}); let TMPDIR name one",
           error.message());
  }
  sweep_temporary_files(folder);
  return folder;
}

/// Reads a run like read_run, in a separate process. If the process crashes or exceeds its limits,
/// the file is refused like a damaged one.
RunData read_apart(const fs::path& path) {
  const TemporaryFile copy{folder_for_copies(path)};
  // Only this user may read the copy, since the run may be private; this is set while the file is
  // empty.
  constexpr mode_t own = 0600;
  static_cast<void>(fchmod(copy.descriptor().get(), own));
  base::Answer answer;
  try {
    answer = base::answer_within(limits_for(path), [&] { return read_and_copy(path, copy); });
  } catch (const base::Error& error) {  // the process cannot be started
    throw base::Error(fmt::format("{} cannot be read: {}", path.string(), error.what()),
                      error.where());
  }
  if (!answer.text || answer.text->empty()) {
    refuse_after(path, answer.text ? "silence" : answer.ended);
  }
  if (answer.text->front() == read_well) {
    return read_copy(path, copy, answer.text->substr(1));
  }
  // After the mark in its first character, the text is the whole error message. It already names
  // the file, so refuse() is not called, which would name it again.
  throw base::UsageError(base::printable(answer.text->substr(1), longest_refusal));
}

/// Returns the attribute `id` of an HDF5 file of this format, read in a separate process; none
/// when the file has another format or cannot be read.
std::optional<std::string> id_apart(const fs::path& path, std::string_view format) {
  const base::Answer answer = base::answer_within(limits_for(path), [&]() -> std::string {
    try {
      const std::optional<std::string> id = id_here(path, format);
      return id ? read_well + *id : std::string{};
    } catch (const std::exception&) {
      return {};
    }
  });
  if (!answer.text || answer.text->empty()) return std::nullopt;
  return answer.text->substr(1);
}

}  // namespace

RunData read_run(const std::filesystem::path& path) {
  try {
    return read_here(path, Accept::digest_right);
  } catch (const DigestNotRight&) {
    return read_apart(path);
  }
}

bool may_be_run_file(const std::filesystem::path& path) {
  std::error_code absent;
  return std::filesystem::is_regular_file(path, absent) && hdf5::File::has_signature(path);
}

std::vector<PointData> readable_points(const fs::path& path, const std::string& id,
                                       const fs::path& parts_in) {
  return RunReader{Accept::digest_right}.read_readable(path, id, parts_in);
}

std::optional<std::string> run_id_of(const fs::path& path, std::string_view format) {
  try {
    std::error_code ignored;
    const bool is_plain = fs::is_regular_file(fs::symlink_status(path, ignored));
    if (!is_plain || !hdf5::File::has_signature(path)) return std::nullopt;
    return digest_state(path) == DigestState::right ? id_here(path, format)
                                                    : id_apart(path, format);
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

}  // namespace isoscale::results
