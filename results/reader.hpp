// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/run_data.hpp"

namespace isoscale::results {

/// The part of a run file that is read. A summary has what an index of many runs needs: of the run
/// its identity and of each rank host, node, cpu_model, gpu_name and cores; of points which
/// experiment they are, how they went, and their step times.
enum class Depth : std::uint8_t { whole, summary };

/// The whole run of a run file and of its part files. Attributes, groups and datasets that this
/// version does not know are passed over. Throws base::UsageError, which names the file, when it is
/// missing, no HDF5 file, truncated, no run file, of a newer or older major schema version,
/// damaged, or contradicts itself in what is read.
[[nodiscard]] RunData read_run(const std::filesystem::path& path, Depth depth = Depth::whole);

/// Reads those points of the run `id` that can be read: of a file whose name may have changed, and
/// of its parts in `parts_in`. This saves what is left of a run that cannot be written any more.
[[nodiscard]] std::vector<PointData> readable_points(const std::filesystem::path& path,
                                                     const std::string& id,
                                                     const std::filesystem::path& parts_in);

/// True if a file is there that may be a run file or a part of one, and is not to be overwritten
/// with anything else.
[[nodiscard]] bool may_be_run_file(const std::filesystem::path& path);

/// The run that a file of this format (layout.hpp) belongs to; none when the file is not there, is
/// of another format or cannot be read. Throws nothing of HDF5's.
[[nodiscard]] std::optional<std::string> run_id_of(const std::filesystem::path& path,
                                                   std::string_view format);

}  // namespace isoscale::results
