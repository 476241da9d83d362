// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/writer/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/warn.hpp"
#include "results/hdf5/file_digest.hpp"
#include "results/hdf5/hdf5.hpp"
#include "results/hdf5/run_hdf5.hpp"
#include "results/reader/reader.hpp"
#include "results/records/run_and_calibration_fields.hpp"

namespace isoscale::results {
namespace {

namespace fs = std::filesystem;

void remove_file(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

/// Returns the paths of the part files that a run file refers to, by the index of the point.
std::map<int, fs::path> named_parts(const fs::path& run_file) {
  std::map<int, fs::path> parts;
  const hdf5::File file = hdf5::File::open_to_read(run_file);
  const hdf5::Group points = file.root().open_group("points");
  for (const std::string& name : points.names()) {
    const hdf5::Group group = points.open_group(name);
    if (!group.has_attribute("part_file")) continue;
    parts[static_cast<int>(group.get<std::int64_t>("index"))] =
        run_file.parent_path() / group.text("part_file");
  }
  return parts;
}

/// Removes the part files of the run `run_id` that are not in `named`. Other files that are named
/// like a part stay, with a warning. Without a `run_id`, no file is removed.
void remove_unnamed_parts(const fs::path& run_file, const std::optional<std::string>& run_id,
                          const std::set<fs::path>& named) {
  for (const fs::path& file : existing_parts(run_file)) {
    if (named.contains(file)) continue;
    if (run_id && run_id_of(file, part_format_name) == run_id) {
      remove_file(file);
      continue;
    }
    constexpr std::size_t longest = 1000;
    base::warn(
        base::printable(fmt::format("isoscale: {} has the name of a part of {} but belongs to "
                                    "another run; it is not changed",
                                    file.string(), run_file.filename().string()),
                        longest));
  }
}

/// Returns an unused name for the part file of a point: part_path(), or with -2, -3, ... added.
fs::path new_part_path(const fs::path& run_file, int index) {
  fs::path path = part_path(run_file, index);
  for (int number = 2; identity_of(path); ++number) {
    path = part_path(run_file, index);
    path.replace_filename(fmt::format("{}-{}{}", path.stem().string(), number,  //
                                      path.extension().string()));
  }
  return path;
}

/// The bytes that are reserved in a run file for a reference to a part file, or for the fields of
/// put_end() without the calibration. Both usually need less; only warnings may have any length.
constexpr std::uint64_t room_for_reference = std::uint64_t{64} * 1024;

/// Calls `work` and adds the path to its errors, since HDF5 does not always name the file.
template <class Work>
void naming(std::string_view what, const fs::path& path, Work&& work) {
  try {
    work();
  } catch (const hdf5::Hdf5Error& error) {
    throw base::Error(fmt::format("cannot {} {}: {}", what, path.string(), error.what()),
                      error.where());
  }
}

/// Opens a temporary file with `open`, applies `change` to its root, and closes it. Its digest is
/// outdated until put_digest() is called.
template <class Change>
void change_file(const TemporaryFile& file, hdf5::File (*open)(const fs::path&), Change&& change) {
  naming("write", file.path(), [&] { open(file.path()).change_and_close(change); });
}

/// Makes `file` an HDF5 file with the attributes of put_marks() and the content that `fill` adds.
template <class Fill>
void create_file(const TemporaryFile& file, std::string_view format, Fill&& fill) {
  change_file(file, hdf5::File::create, [&](hdf5::Group& root) {
    put_marks(root, format);
    fill(root);
  });
}

/// Opens the run file that an earlier launch published; this process becomes its only writer.
Descriptor open_published(const fs::path& path) {
  Descriptor file = open_locked(path);
  if (file && owner_may_write(file)) return file;
  throw base::UsageError(
      fs::exists(path)
          ? fmt::format("{} is read-only, so no run can continue it; let its owner write it "
                        "(chmod u+w), or resume a copy",
                        path.string())
          : fmt::format("cannot continue {}: the file does not exist", path.string()));
}

/// True if the file still has the id, the end time, the points and their status that it had when
/// `read` was read from it. The status of points in part files is not compared.
bool is_unchanged(const hdf5::Group& root, const RunData& read) {
  const hdf5::Group points = root.open_group("points");
  const auto is_there = [&](const PointData& point) {
    const std::string name = point_group_name(point.index);
    if (!points.has(name)) return false;
    const hdf5::Group group = points.open_group(name);
    return !group.has_attribute("status") || group.text("status") == results::name(point.status);
  };
  return root.text("id") == read.id && root.text("ended") == read.ended &&
         points.names().size() == read.points.size() && std::ranges::all_of(read.points, is_there);
}

/// Throws base::UsageError if another launch has changed the file since it was read.
void require_unchanged(const fs::path& path, const RunData& read) {
  bool is_same = false;
  naming("read", path, [&] {
    const hdf5::File file = hdf5::File::open_to_read(path);
    is_same = is_unchanged(file.root(), read);
  });
  if (is_same) return;
  throw base::usage_error(
      "{} has been changed by another launch since it was read; resume it again", path.string());
}

/// Removes what a run gets only when it ends: the end time, the completeness, and the calibration,
/// which is fitted to all points.
void make_partial(RunData& run) {
  run.calibration.reset();
  run.complete = false;
  run.ended.clear();
}

}  // namespace

RunWriter::RunWriter(const fs::path& path, RunData header, settings::IfExists if_exists,
                     units::Bytes part_limit)
    : path_(resolved_output(path)),
      header_(std::move(header)),
      if_exists_(if_exists),
      part_limit_(part_limit.value()) {
  header_.points.clear();
  make_partial(header_);
  summary_ = summary_of(header_);
  if (if_exists_ == settings::IfExists::overwrite) {
    replaced_ = open_locked(path_);
    owned_ = identity_of(path_);
    replaced_id_ = run_id_of(path_, format_name);
  }
  const TemporaryFile rehearsal{path_.parent_path()};
  write_header(rehearsal);
}

RunWriter::RunWriter(const fs::path& path, RunData earlier, const std::set<int>& again,
                     units::Bytes part_limit)
    : path_(resolved_output(path)),
      header_(std::move(earlier)),
      if_exists_(settings::IfExists::overwrite),
      part_limit_(part_limit.value()),
      published_(open_published(path_)),
      owned_(identity_of(published_)) {
  require_unchanged(path_, header_);
  const std::vector<PointData> before = std::exchange(header_.points, {});
  make_partial(header_);
  summary_ = summary_of(header_);
  const std::map<int, fs::path> parts = named_parts(path_);
  std::vector<int> removed;
  for (const PointData& point : before) {
    if (again.contains(point.index)) {
      removed.push_back(point.index);
      continue;
    }
    committed_.insert(point.index);
    const auto part = parts.find(point.index);
    add_point(summary_, point,
              part == parts.end() ? std::nullopt : std::optional{part->second.filename().string()});
  }
  commit_change(room_for_reference, summary_, [&](hdf5::Group& root) {
    hdf5::Group points = root.open_group("points");
    for (const int index : removed) points.remove(point_group_name(index));
    put_end(root, header_);
  });
  std::set<fs::path> kept;
  for (const auto& [index, part] : parts) {
    kept.insert(part);
    if (again.contains(index)) outdated_parts_[index] = part;
  }
  remove_unnamed_parts(path_, header_.id, kept);
}

RunWriter RunWriter::resume(const fs::path& path, RunData earlier, const std::set<int>& again,
                            units::Bytes part_limit) {
  return RunWriter{path, std::move(earlier), again, part_limit};
}

void RunWriter::write_header(const TemporaryFile& file) const {
  create_file(file, format_name, [&](hdf5::Group& root) { put_header(root, header_); });
}

void RunWriter::publish(TemporaryFile& file) {
  const bool first = !published_;
  put_digest(file.descriptor());
  // The identity is determined before publishing, since determining it may fail, and nothing may
  // fail once the file has its final name.
  const FileIdentity next = identity_of(file.descriptor());
  const std::optional<FileIdentity> there = identity_of(path_);
  if (there && there != owned_) {
    throw base::Error(fmt::format(
        "another launch has written {} while this one was under way, and it is not overwritten; "
        "let one launch at a time write a file, or name another one with --output",
        path_.string()));
  }
  published_ = file.publish(path_, there ? Publish::replace : Publish::only_new);
  owned_ = next;
  replaced_.reset();
  if (first && if_exists_ == settings::IfExists::overwrite) {
    // These part files belong to the run that has just been replaced; this run has none yet.
    remove_unnamed_parts(path_, replaced_id_, {});
  }
}

template <class Change>
void RunWriter::commit_change(std::uint64_t room, RunSummary next_summary, Change&& change) {
  const std::string summary = summary_text(next_summary);
  TemporaryFile next{path_.parent_path()};
  if (published_) {
    // HDF5 finds its data after the room for a digest. An old file may lack that room, so its
    // content is then moved.
    next.copy_from(published_, has_digest(published_) ? 0 : digest_block_bytes);
  } else {
    write_header(next);
  }
  next.reserve(room + summary.size());
  change_file(next, hdf5::File::open_to_change, std::forward<Change>(change));
  next.append(summary);
  publish(next);
  summary_ = std::move(next_summary);
}

RunSummary RunWriter::with(const PointData& point, std::optional<std::string> part_file) const {
  RunSummary next = summary_;
  add_point(next, point, std::move(part_file));
  return next;
}

void RunWriter::commit(const PointData& point) {
  try {
    validate(point);
  } catch (const base::Error& error) {
    throw base::Error(fmt::format("point {} cannot be written: {}", point.index, error.what()));
  }
  if (committed_.contains(point.index)) {
    throw base::Error(fmt::format("point {} has been written already", point.index));
  }
  const std::uint64_t room = room_for(point);
  if ((published_ ? size_of(published_) : 0) + room > part_limit_) {
    commit_as_part(point, room);
  } else {
    commit_change(room, with(point), [&](hdf5::Group& root) { put_point(root, point); });
  }
  committed_.insert(point.index);
  if (const auto outdated = outdated_parts_.extract(point.index)) remove_file(outdated.mapped());
}

void RunWriter::commit_as_part(const PointData& point, std::uint64_t room) {
  // The run file is published before its parts. If a part came first and this launch then ended,
  // the part would, by its name, seem to belong to the run file of an earlier launch beside it.
  if (!published_) commit_change(0, summary_, [](hdf5::Group&) {});
  const fs::path path = new_part_path(path_, point.index);
  TemporaryFile part{path_.parent_path()};
  create_file(part, part_format_name, [&](hdf5::Group& root) {
    root.set("id", header_.id);
    root.set("part_of", path_.filename().string());
    root.create_group("points");
  });
  part.reserve(room);
  change_file(part, hdf5::File::open_to_change, [&](hdf5::Group& root) { put_point(root, point); });
  put_digest(part.descriptor());
  const Descriptor written = part.publish(path, Publish::only_new);
  try {
    commit_change(room_for_reference, with(point, path.filename().string()), [&](auto& root) {
      hdf5::Group group = root.open_group("points").create_group(point_group_name(point.index));
      group.set("index", std::int64_t{point.index});
      group.set("part_file", path.filename().string());
    });
  } catch (...) {  // the part file is removed, since the run file does not refer to it
    remove_file(path);
    throw;
  }
}

void RunWriter::finish(const RunData& last) {
  const std::uint64_t room = last.calibration ? room_for(*last.calibration) : 0;
  RunSummary ended = summary_;
  ended.run.ended = last.ended;
  ended.run.complete = last.complete;
  commit_change(room_for_reference + room, std::move(ended),
                [&](hdf5::Group& root) { put_end(root, last); });
  for (const auto& [index, part] : std::exchange(outdated_parts_, {})) remove_file(part);
}

std::unique_ptr<TemporaryFile> RunWriter::copy_published(const fs::path& directory) const {
  if (!published_) return nullptr;
  auto copy = std::make_unique<TemporaryFile>(directory);
  copy->copy_from(published_);
  return copy;
}

}  // namespace isoscale::results
