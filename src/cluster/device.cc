#include "cluster/device.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cluster/text.h"

namespace weir {
namespace {

constexpr char kAny[] = "*";

std::string AsciiUpper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

// Other types keep their case: the original knows devices by names like "myspecialdevice".
std::string CanonicalType(std::string_view type) {
  std::string upper = AsciiUpper(type);
  return upper == "CPU" || upper == "GPU" ? upper : std::string(type);
}

bool IsShortForm(std::string_view attribute) {
  return attribute == "cpu" || attribute == "CPU" || attribute == "gpu" || attribute == "GPU";
}

// Reads one text into a spec, a "/attribute:value" at a time. All parts are views into the text, so
// that an error can say in which column it is.
class DeviceParser {
 public:
  explicit DeviceParser(std::string_view text) : text_(text) {}

  absl::StatusOr<DeviceSpec> Parse() {
    if (text_.empty() || text_ == "/") return spec_;
    const auto components = Split(text_, '/');
    if (!components.front().empty()) return Expected("\"/\"", components.front());
    for (std::size_t i = 1; i < components.size(); ++i) {
      WEIR_RETURN_IF_ERROR(ReadComponent(components[i]));
    }
    return spec_;
  }

 private:
  absl::Status ReadComponent(std::string_view component) {
    const std::size_t colon = component.find(':');
    const std::string_view attribute = component.substr(0, colon);
    std::optional<std::string_view> value;
    if (colon != std::string_view::npos) value = component.substr(colon + 1);

    if (IsShortForm(attribute)) return ReadDevice(attribute, value, component);
    if (attribute != "job" && attribute != "replica" && attribute != "task" &&
        attribute != "device") {
      return Expected("one of job:, replica:, task:, device:, cpu, gpu", component);
    }
    if (!value) return Expected(absl::StrCat("\":\" after ", std::string(attribute)), component);
    if (attribute == "job") return ReadJob(*value);
    if (attribute == "replica") return ReadIndex(*value, "a replica number", spec_.replica);
    if (attribute == "task") return ReadIndex(*value, "a task number", spec_.task);
    return ReadTypeAndId(*value, component);
  }

  absl::Status ReadJob(std::string_view value) {
    if (value == kAny) {
      spec_.job.reset();
      return absl::OkStatus();
    }
    if (!IsName(value)) return Expected("a job name (a letter, then letters, digits, _)", value);
    spec_.job = std::string(value);
    return absl::OkStatus();
  }

  absl::Status ReadIndex(std::string_view value, const char* what, std::optional<int>& field) {
    field = ParseIndex(value);
    if (!field && value != kAny) return Expected(absl::StrCat(what, " or *"), value);
    return absl::OkStatus();
  }

  absl::Status ReadTypeAndId(std::string_view value, std::string_view component) {
    const std::size_t colon = value.find(':');
    std::optional<std::string_view> id;
    if (colon != std::string_view::npos) id = value.substr(colon + 1);
    return ReadDevice(value.substr(0, colon), id, component);
  }

  absl::Status ReadDevice(std::string_view type, std::optional<std::string_view> id,
                          std::string_view component) {
    if (spec_.type) return Expected("only one device type", component);
    if (type != kAny && !IsName(type)) return Expected("a device type or *", type);
    if (type != kAny) spec_.type = CanonicalType(type);
    spec_.id.reset();
    if (!id) return absl::OkStatus();
    return ReadIndex(*id, "a device number", spec_.id);
  }

  absl::Status Expected(std::string_view what, std::string_view where) const {
    return absl::InvalidArgumentError(
        absl::StrCat("device ", Quote(text_), ": expected ", std::string(what), " at column ",
                     where.data() - text_.data() + 1, ", found ",
                     where.empty() ? std::string("nothing") : Quote(where)));
  }

  const std::string_view text_;
  DeviceSpec spec_;
};

template <typename Field>
void TakeIfSet(std::optional<Field>& target, const std::optional<Field>& source) {
  if (source) target = source;
}

template <typename Field>
bool Conflict(const std::optional<Field>& a, const std::optional<Field>& b) {
  return a && b && *a != *b;
}

absl::Status Incompatible(const char* fields, const DeviceSpec& a, const DeviceSpec& b) {
  return absl::InvalidArgumentError(absl::StrCat("Cannot merge devices with incompatible ", fields,
                                                 ": '", a.ToString(), "' and '", b.ToString(),
                                                 "'"));
}

template <typename Field>
bool Satisfies(const std::optional<Field>& request, const std::optional<Field>& device) {
  return !request || request == device;
}

}  // namespace

absl::StatusOr<DeviceSpec> DeviceSpec::Parse(std::string_view text) {
  return DeviceParser(text).Parse();
}

std::string DeviceSpec::ToString() const {
  std::string out;
  if (job) absl::StrAppend(&out, "/job:", *job);
  if (replica) absl::StrAppend(&out, "/replica:", *replica);
  if (task) absl::StrAppend(&out, "/task:", *task);
  if (type || id) {
    absl::StrAppend(&out, "/device:", type.value_or(kAny), ":", id ? absl::StrCat(*id) : kAny);
  }
  return out;
}

DeviceSpec DeviceSpec::FullCpu(const TaskId& task, int id) {
  return {.job = task.job, .replica = 0, .task = task.index, .type = "CPU", .id = id};
}

DeviceSpec MergeScopes(const DeviceSpec& outer, const DeviceSpec& inner) {
  DeviceSpec merged = outer;
  TakeIfSet(merged.job, inner.job);
  TakeIfSet(merged.replica, inner.replica);
  TakeIfSet(merged.task, inner.task);
  TakeIfSet(merged.type, inner.type);
  TakeIfSet(merged.id, inner.id);
  return merged;
}

absl::StatusOr<DeviceSpec> MergeRequests(const DeviceSpec& a, const DeviceSpec& b, bool soft) {
  if (Conflict(a.job, b.job)) return Incompatible("jobs", a, b);
  if (Conflict(a.replica, b.replica)) return Incompatible("replicas", a, b);
  if (Conflict(a.task, b.task)) return Incompatible("tasks", a, b);
  const bool types_conflict = Conflict(a.type, b.type);
  const bool ids_conflict = Conflict(a.id, b.id);
  if (types_conflict && !soft) return Incompatible("types", a, b);
  if (ids_conflict && !soft) return Incompatible("ids", a, b);

  // Without conflicts in job, replica and task it does not matter whose field is taken.
  DeviceSpec merged = MergeScopes(a, b);
  if (types_conflict) merged.type.reset();
  if (types_conflict || ids_conflict) merged.id.reset();
  return merged;
}

bool Matches(const DeviceSpec& request, const DeviceSpec& device) {
  return Satisfies(request.job, device.job) &&
         request.replica.value_or(0) == device.replica.value_or(0) &&
         Satisfies(request.task, device.task) && Satisfies(request.type, device.type) &&
         Satisfies(request.id, device.id);
}

}  // namespace weir
