// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/hdf5/hdf5.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <utility>

#include "base/warn.hpp"
#include "results/hdf5/file_digest.hpp"

namespace isoscale::results::hdf5 {
namespace {

/// HDF5 calls this function for each entry of its error stack; it appends the entry's description
/// to `text`. It must not throw, since its caller is C code.
herr_t append_entry(unsigned /*position*/, const H5E_error2_t* entry, void* text) noexcept {
  try {
    auto& out = *static_cast<std::string*>(text);
    if (entry->desc == nullptr || *entry->desc == '\0') return 0;
    if (!out.empty()) out += ": ";
    out += entry->desc;
  } catch (...) {
    return -1;
  }
  return 0;
}

std::string error_stack() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append_entry, &text);
  H5Eclear2(H5E_DEFAULT);
  return text.empty() ? "HDF5 gave no reason" : "HDF5: " + text;
}

/// Changes two defaults of HDF5; must be called before any other HDF5 function. HDF5 would print
/// each failed call on standard error, but these wrappers throw instead. At the end of the process,
/// HDF5 would close all objects that are still open, which crashes for a file that could not be
/// closed earlier; the handles here are closed by then.
void silence() {
  static const herr_t left_alone = H5dont_atexit();
  static_cast<void>(left_alone);  // ignored: it fails if other code has used HDF5
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

PropertyId file_access() {
  silence();
  PropertyId access{check(H5Pcreate(H5P_FILE_ACCESS))};
  // With these arguments HDF5 does not lock files, and does not fail on file systems without locks.
  check(H5Pset_file_locking(access.get(), false, true));
  // The format of HDF5 1.8 has checksums for metadata, can be read by all later versions, and has
  // no flag that marks a file as open for writing, which a killed writer would leave set.
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST));
  // With this setting, closing the file writes all data and closes it, even if a handle to one of
  // its objects could not be closed.
  check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG));
  return access;
}

/// Lets a group keep up to 128 attributes and 128 members in its header, which has a checksum; HDF5
/// stores more of them elsewhere, without a checksum. Only the group `points`, which has one member
/// for each point, may need more.
void keep_in_header(const PropertyId& create) {
  constexpr unsigned most = 128, least = 64;
  check(H5Pset_attr_phase_change(create.get(), most, least));
  check(H5Pset_link_phase_change(create.get(), most, least));
}

/// HDF5 calls this function for each link or attribute; it appends the names of attributes and of
/// hard links to `names`.
template <class Info>
herr_t append_name(hid_t /*owner*/, const char* name, const Info* info, void* names) noexcept {
  if constexpr (std::same_as<Info, H5L_info_t>) {
    if (info->type != H5L_TYPE_HARD) return 0;
  }
  try {
    static_cast<std::vector<std::string>*>(names)->push_back(name);
  } catch (...) {
    return -1;
  }
  return 0;
}

/// The largest size in bytes of an attribute's text of fixed length; reading a longer one throws.
/// Such texts come from other programs: Isoscale writes attributes of variable length.
constexpr std::size_t max_text = std::size_t{1} << 24;

void write_scalar(hid_t owner, const std::string& name, hid_t file_type, hid_t memory_type,
                  const void* value) {
  if (check(H5Aexists(owner, name.c_str())) > 0) check(H5Adelete(owner, name.c_str()));
  const SpaceId space{check(H5Screate(H5S_SCALAR))};
  const AttributeId attribute{
      check(H5Acreate2(owner, name.c_str(), file_type, space.get(), H5P_DEFAULT, H5P_DEFAULT))};
  check(H5Awrite(attribute.get(), memory_type, value));
}

struct OpenAttribute {
  AttributeId id;
  TypeId type;
};

/// Opens an attribute. Throws Hdf5Error if it is missing, not scalar, or not of the class `wanted`.
OpenAttribute open_scalar(hid_t owner, const std::string& name, H5T_class_t wanted) {
  // H5Aexists is called only after a failure: calling it first would look up each attribute twice,
  // and a file has about a thousand.
  const hid_t opened = H5Aopen(owner, name.c_str(), H5P_DEFAULT);
  if (opened < 0) {
    const bool there = check(H5Aexists(owner, name.c_str())) > 0;
    throw Hdf5Error("attribute '" + name + (there ? "' cannot be opened" : "' is missing"));
  }
  OpenAttribute attribute;
  attribute.id = AttributeId{opened};
  attribute.type = TypeId{check(H5Aget_type(attribute.id.get()))};
  const SpaceId space{check(H5Aget_space(attribute.id.get()))};
  const bool is_scalar = H5Sget_simple_extent_type(space.get()) != H5S_NULL &&
                         H5Sget_simple_extent_npoints(space.get()) == 1;
  if (H5Tget_class(attribute.type.get()) != wanted || !is_scalar) {
    throw Hdf5Error("attribute '" + name + "' has another type than it should");
  }
  return attribute;
}

struct HeapTextFree {
  void operator()(char* text) const noexcept { H5free_memory(text); }
};

}  // namespace

hid_t check(hid_t code, std::source_location where) {
  if (code < 0) throw Hdf5Error(error_stack(), where);
  return code;
}

int check(herr_t code, std::source_location where) {
  if (code < 0) throw Hdf5Error(error_stack(), where);
  return code;
}

std::size_t size_of_type(hid_t type, std::source_location where) {
  const std::size_t bytes = H5Tget_size(type);
  if (bytes == 0) throw Hdf5Error(error_stack(), where);
  return bytes;
}

TypeId text_type(std::size_t length) {
  TypeId type{check(H5Tcopy(H5T_C_S1))};
  check(H5Tset_size(type.get(), length));
  if (length != H5T_VARIABLE) check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD));
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  return type;
}

Types types_of(bool /*value*/) {  // NOLINT: the value itself is boolean
  TypeId type{check(H5Tenum_create(H5T_STD_I8LE))};
  for (const auto& [label, value] :
       {std::pair<const char*, std::int8_t>{"FALSE", 0}, {"TRUE", 1}}) {
    check(H5Tenum_insert(type.get(), label, &value));
  }
  const hid_t id = type.get();
  return {id, id, H5T_ENUM, std::move(type)};
}

void warn_close_failed() noexcept {
  try {
    base::warn("isoscale: warning: " + error_stack());
  } catch (...) {
    // Out of memory: the failure cannot be reported.
  }
}

Group Group::create_group(const std::string& name) {
  const PropertyId create{check(H5Pcreate(H5P_GROUP_CREATE))};
  keep_in_header(create);
  return Group{
      GroupId{check(H5Gcreate2(id_.get(), name.c_str(), H5P_DEFAULT, create.get(), H5P_DEFAULT))}};
}

Group Group::open_group(const std::string& name) const {
  if (!has(name)) throw Hdf5Error("group '" + name + "' is missing");
  return Group{GroupId{check(H5Gopen2(id_.get(), name.c_str(), H5P_DEFAULT))}};
}

bool Group::has(const std::string& name) const {
  H5L_info_t info{};
  // H5Lexists is called only after a failure: calling it first would look up each name twice.
  if (H5Lget_info(id_.get(), name.c_str(), &info, H5P_DEFAULT) < 0) {
    if (check(H5Lexists(id_.get(), name.c_str(), H5P_DEFAULT)) == 0) return false;
    check(H5Lget_info(id_.get(), name.c_str(), &info, H5P_DEFAULT));
  }
  return info.type == H5L_TYPE_HARD;
}

std::vector<std::string> Group::names() const {
  std::vector<std::string> names;
  hsize_t position = 0;
  check(H5Literate(id_.get(), H5_INDEX_NAME, H5_ITER_INC, &position, append_name<H5L_info_t>,
                   &names));
  return names;
}

void Group::remove(const std::string& name) {
  check(H5Ldelete(id_.get(), name.c_str(), H5P_DEFAULT));
}

File File::create(const std::filesystem::path& path) {
  const PropertyId access = file_access();
  const PropertyId create{check(H5Pcreate(H5P_FILE_CREATE))};
  keep_in_header(create);
  check(H5Pset_userblock(create.get(), digest_block_bytes));
  return File{FileId{check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, create.get(), access.get()))}};
}

File File::open_to_change(const std::filesystem::path& path) {
  const PropertyId access = file_access();
  return File{FileId{check(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()))}};
}

File File::open_to_read(const std::filesystem::path& path) {
  const PropertyId access = file_access();
  // Each dataset is read once and as a whole, so HDF5's sieve buffer for partial reads (64 KiB per
  // dataset) would be useless.
  check(H5Pset_sieve_buf_size(access.get(), 0));
  return File{FileId{check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()))}};
}

bool File::has_signature(const std::filesystem::path& path) {
  std::array<char, digest_block_bytes + hdf5_signature.size()> room{};
  std::ifstream file(path, std::ios::binary);
  file.read(room.data(), room.size());
  const std::string_view begin{room.data(), static_cast<std::size_t>(file.gcount())};
  if (begin.starts_with(hdf5_signature)) return true;
  if (begin.size() == room.size() && begin.ends_with(hdf5_signature)) return true;
  // A file that was cut off within its digest block counts as a run file, too.
  return begin.size() >= hdf5_signature.size() &&
         digest_mark.starts_with(begin.substr(0, digest_mark.size()));
}

Group File::root() const { return Group{GroupId{check(H5Gopen2(id_.get(), "/", H5P_DEFAULT))}}; }

void File::close() { check(H5Fclose(id_.release())); }

bool Group::has_attribute(const std::string& name) const {
  return check(H5Aexists(id_.get(), name.c_str())) > 0;
}

std::vector<std::string> Group::attribute_names() const {
  std::vector<std::string> names;
  hsize_t position = 0;
  check(H5Aiterate2(id_.get(), H5_INDEX_NAME, H5_ITER_INC, &position, append_name<H5A_info_t>,
                    &names));
  return names;
}

void Group::set(const std::string& name, std::string_view text) {
  const std::string value = valid_utf8(text);
  const char* pointer = value.c_str();
  const TypeId type = text_type(H5T_VARIABLE);
  write_scalar(id_.get(), name, type.get(), type.get(), &pointer);
}

void Group::set_number(const std::string& name, const Types& types, const void* value) {
  write_scalar(id_.get(), name, types.file, types.memory, value);
}

std::string Group::text(const std::string& name) const {
  const OpenAttribute attribute = open_scalar(id_.get(), name, H5T_STRING);
  if (check(H5Tis_variable_str(attribute.type.get())) > 0) {
    char* pointer = nullptr;
    check(H5Aread(attribute.id.get(), attribute.type.get(), static_cast<void*>(&pointer)));
    const std::unique_ptr<char, HeapTextFree> owned{pointer};
    return valid_utf8(owned == nullptr ? "" : owned.get());
  }
  const std::size_t length = size_of_type(attribute.type.get());
  if (length > max_text || length > H5Aget_storage_size(attribute.id.get())) {
    throw Hdf5Error("attribute '" + name + "' claims more text than there is");
  }
  std::string value(length, '\0');
  check(H5Aread(attribute.id.get(), attribute.type.get(), value.data()));
  return valid_utf8(value.substr(0, std::min(value.find('\0'), value.size())));
}

void Group::get_number(const std::string& name, const Types& types, void* value) const {
  const OpenAttribute attribute = open_scalar(id_.get(), name, types.kind);
  check(H5Aread(attribute.id.get(), types.memory, value));
}

}  // namespace isoscale::results::hdf5
