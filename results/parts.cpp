// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/parts.hpp"

#include <fmt/format.h>

#include <system_error>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "results/digest.hpp"
#include "results/files.hpp"
#include "results/layout.hpp"
#include "results/output.hpp"
#include "results/read_apart.hpp"
#include "results/read_here.hpp"

namespace isoscale::results {
namespace fs = std::filesystem;
namespace {

bool is_plain_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(fs::symlink_status(path, ignored));
}

void warn_of_foreign(const fs::path& run_file, const fs::path& file) {
  constexpr std::size_t longest = 1000;
  base::warn(
      base::printable(fmt::format("isoscale: {} has the name of a part of {} and is none of this "
                                  "run; it is left as it is",
                                  file.string(), run_file.filename().string()),
                      longest));
}

}  // namespace

std::optional<std::string> run_id_of(const fs::path& path, std::string_view format) {
  try {
    if (!is_plain_file(path) || !hdf5::File::has_signature(path)) return std::nullopt;
    return digest_state(path) == DigestState::right ? id_here(path, format)
                                                    : id_apart(path, format);
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

std::map<int, fs::path> named_parts(const fs::path& run_file, const hdf5::Group& points) {
  std::map<int, fs::path> parts;
  for (const std::string& name : points.names()) {
    const hdf5::Group group = points.open_group(name);
    if (!group.has_attribute("part_file")) continue;
    parts[static_cast<int>(group.integer("index"))] =
        run_file.parent_path() / group.text("part_file");
  }
  return parts;
}

void remove_unnamed_parts(const fs::path& run_file, const std::optional<std::string>& run_id,
                          const std::set<fs::path>& named) {
  std::error_code ignored;
  for (const fs::path& file : existing_parts(run_file)) {
    if (named.contains(file)) continue;
    if (run_id && run_id_of(file, part_format_name) == run_id) {
      fs::remove(file, ignored);
    } else {
      warn_of_foreign(run_file, file);
    }
  }
}

fs::path new_part_path(const fs::path& run_file, int index) {
  fs::path path = part_path(run_file, index);
  for (int number = 2; identity_of(path); ++number) {
    path = part_path(run_file, index);
    path.replace_filename(fmt::format("{}-{}{}", path.stem().string(), number,  //
                                      path.extension().string()));
  }
  return path;
}

UnnamedPart::~UnnamedPart() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove(path_, ignored);
}

}  // namespace isoscale::results
