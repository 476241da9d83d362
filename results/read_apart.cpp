// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/read_apart.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <exception>
#include <functional>
#include <system_error>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "results/digest.hpp"
#include "results/files.hpp"
#include "results/hdf5.hpp"
#include "results/layout.hpp"
#include "results/output.hpp"
#include "results/put_run.hpp"
#include "results/read_here.hpp"

namespace isoscale::results {
namespace fs = std::filesystem;
namespace {

constexpr units::Bytes least_memory{std::uint64_t{1} << 30U};
constexpr std::uint64_t memory_per_byte =
    8;  ///< of files: columns unpacked, and what is made of them
constexpr std::uint64_t bytes_per_second = std::uint64_t{8} << 20U;  ///< read and written, slowly
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int slowdown = 10;  ///< of all that a sanitizer watches
#else
constexpr int slowdown = 1;
#endif
/// What a first letter of the answer means; a sentence follows it.
constexpr char read_well = 'r', refused = 'n';

/// By the sizes of a run file and of what lies beside it as its parts.
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
  return {.memory = memory, .cpu_time = cpu_time, .wall_time = slow_disk + 10 * cpu_time};
}

/// Everything of a run into one new file.
void write_copy(const TemporaryFile& copy, const RunData& run) {
  hdf5::File file = hdf5::File::create(copy.path());
  {
    hdf5::Group root = file.root();
    put_marks(root, format_name);
    put_header(root, run);
    put_end(root, run);
    hdf5::Group points = root.open_group("points");
    for (const PointData& point : run.points) {
      put_point(points, point,
                {.ops = to_table(point.outline),
                 .traces = to_table(point.traces),
                 .rows = to_table(point.rows)});
    }
  }
  file.close();
  put_digest(copy.descriptor());
}

/// The work of the other process.
std::string read_and_copy(const fs::path& path, Depth depth, const TemporaryFile& copy) noexcept {
  try {
    write_copy(copy, read_here(path, depth, Accept::all));
    return std::string{read_well};
  } catch (const base::UsageError& error) {
    return refused + std::string{error.what()};
  } catch (const std::exception& error) {
    return refused + fmt::format("{}: cannot be read ({}); copy it again from where it was written",
                                 path.string(), error.what());
  }
}

[[noreturn]] void refuse_after(const fs::path& path, std::string_view ended) {
  refuse(path, fmt::format("reading it ended in {}; it may be damaged: copy it again from where it "
                           "was written",
                           ended));
}

/// As base::answer_within(), with the file named where there is no other process.
base::Answer answer_apart(const fs::path& path, const base::Limits& limits,
                          const std::function<std::string()>& answer) {
  try {
    return base::answer_within(limits, answer);
  } catch (const base::Error& error) {
    throw base::Error(fmt::format("{} cannot be read: {}", path.string(), error.what()),
                      error.where());
  }
}

/// What the other process has left.
RunData read_copy(const fs::path& path, Depth depth, const TemporaryFile& copy) {
  try {
    return read_here(copy.path(), depth, Accept::digest_right);
  } catch (const DigestNotRight&) {
    refuse_after(path, "a copy that is not whole");
  } catch (const std::exception& error) {
    refuse_after(path, fmt::format("a copy that cannot be read ({})", error.what()));
  }
}

/// Where temporary files go, without those of processes that were killed.
fs::path folder_for_copies(const fs::path& path) {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) {
    refuse(path, fmt::format("cannot be read without a folder for temporary files ({}); let TMPDIR "
                             "name one",
                             error.message()));
  }
  sweep_temporary_files(folder);
  return folder;
}

}  // namespace

RunData read_apart(const fs::path& path, Depth depth) {
  const TemporaryFile copy{folder_for_copies(path)};
  // For this user alone while it is empty: a run may be nobody else's business.
  constexpr mode_t own = 0600;
  static_cast<void>(fchmod(copy.descriptor().get(), own));
  const base::Answer answer =
      answer_apart(path, limits_for(path), [&] { return read_and_copy(path, depth, copy); });
  if (!answer.text || answer.text->empty()) {
    refuse_after(path, answer.text ? "silence" : answer.ended);
  }
  if (answer.text->front() == read_well) return read_copy(path, depth, copy);
  // It begins with the file's name, as refuse() makes it.
  constexpr std::size_t longest = 1000;
  throw base::UsageError(base::printable(answer.text->substr(1), longest));
}

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

}  // namespace isoscale::results
