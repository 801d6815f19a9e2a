"""Feeds small trees to tools/include_graph; each breaks one rule, or none."""
import tempfile
import unittest

import script

include_graph = script.load("include_graph")


def include(*headers):
    return "".join(f'#include "{header}"\n' for header in headers)


class IncludeGraphTest(unittest.TestCase):
    def errors_of(self, files):
        with tempfile.TemporaryDirectory() as root:
            script.write_tree(root, files)
            return include_graph.check(include_graph.Tree(root))

    def assert_clean(self, files):
        self.assertEqual(self.errors_of(files), [])

    def assert_error(self, files, *parts):
        errors = self.errors_of(files)
        self.assertEqual(len(errors), 1, errors)
        for part in parts:
            self.assertIn(part, errors[0])

    def test_downward_includes_are_fine(self):
        self.assert_clean({
            "src/base/a.h": "",
            "src/store/b.h": include("base/a.h"),
            "src/cli/c.cc": include("store/b.h", "base/a.h"),
        })

    def test_upward_include_is_an_error(self):
        self.assert_error({
            "src/base/a.h": include("store/b.h"),
            "src/store/b.h": "",
        }, "src/base/a.h", "src/store/b.h", "floor 0", "floor 3")

    def test_upward_include_of_a_test_is_an_error(self):
        self.assert_error({
            "src/base/a_test.cc": include("store/b.h"),
            "src/store/b.h": "",
        }, "src/base/a_test.cc")

    def test_include_relative_to_its_own_folder_is_seen(self):
        self.assert_error({
            "src/base/a.h": include("b.h"),
            "src/base/b.h": include("a.h"),
        }, "files in a circle")
        self.assert_error({
            "src/base/a.h": include("../store/b.h"),
            "src/store/b.h": "",
        }, "floor 3")

    def test_sideways_include_is_fine(self):
        self.assert_clean({
            "src/optim/a.h": include("store/b.h"),
            "src/store/b.h": "",
        })

    def test_circle_of_folders_without_circle_of_files_is_an_error(self):
        self.assert_error({
            "src/optim/a.h": include("store/b.h"),
            "src/optim/c.h": "",
            "src/store/b.h": "",
            "src/store/d.h": include("optim/c.h"),
        }, "folders in a circle", "src/optim/a.h includes src/store/b.h",
            "src/store/d.h includes src/optim/c.h")

    def test_circle_of_three_folders_is_an_error(self):
        self.assert_error({
            "src/optim/a.h": include("store/a.h"),
            "src/store/a.h": "",
            "src/store/b.h": include("executor/a.h"),
            "src/executor/a.h": "",
            "src/executor/b.h": include("optim/b.h"),
            "src/optim/b.h": "",
        }, "folders in a circle")

    def test_a_test_may_use_a_neighbour_that_uses_its_folder(self):
        self.assert_clean({
            "src/optim/a.h": include("store/b.h"),
            "src/store/b.h": "",
            "src/store/b_test.cc": include("optim/a.h"),
        })

    def test_circle_of_files_in_one_folder_is_an_error(self):
        self.assert_error({
            "src/graph/a.h": include("graph/b.h"),
            "src/graph/b.h": include("graph/c.h"),
            "src/graph/c.h": include("graph/a.h"),
        }, "files in a circle")

    def test_public_headers_stand_on_the_floor_of_their_folder(self):
        self.assert_clean({
            "include/weir/graph.h": "",
            "src/executor/a.h": "#include <weir/graph.h>\n",
        })
        self.assert_error({
            "include/weir/session.h": "",
            "src/executor/a.h": "#include <weir/session.h>\n",
        }, "include/weir/session.h")

    def test_unknown_folder_and_unknown_public_header_are_errors(self):
        self.assert_error({"src/shed/a.h": ""}, "src/shed/a.h", "FLOORS")
        self.assert_error({"include/weir/shed.h": ""}, "include/weir/shed.h", "PUBLIC")

    def test_libtorch_begins_at_tensor(self):
        self.assert_error({"src/base/a.h": "#include <ATen/core/Tensor.h>\n"}, "libtorch")
        self.assert_error({"src/cluster/a.h": "#include <c10/core/Device.h>\n"}, "libtorch")
        self.assert_clean({"src/tensor/a.h": "#include <torch/csrc/autograd/autograd.h>\n"})

    def test_grpc_and_protobuf_stay_in_their_folder(self):
        self.assert_error({"src/rpc/a.h": "#include <grpcpp/grpcpp.h>\n"}, "gRPC")
        self.assert_error({"src/runtime/a.cc": include("rpc/grpc/weir.pb.h")}, "gRPC")
        self.assert_clean({"src/rpc/grpc/a.cc": "#include <google/protobuf/message.h>\n"})

    def test_asio_stays_in_tcp(self):
        self.assert_error({"src/transport/a.h": "#include <asio.hpp>\n"}, "Asio")
        self.assert_clean({"src/transport/tcp/a.h": "#include <asio/ip/tcp.hpp>\n"})

    def test_the_pure_folders_know_no_socket(self):
        self.assert_error({"src/store/a.cc": "#include <sys/socket.h>\n"}, "sockets")

    def test_environment_is_read_in_cli_only(self):
        self.assert_error({"src/base/a.cc": 'auto x = std::getenv("X");\n'}, "environment")
        self.assert_clean({
            "src/base/a.cc": "// never getenv() here\n/* getenv(\n) */\n",
            "src/cli/a.cc": 'auto x = std::getenv("X");\n',
        })

    def test_include_in_a_comment_is_none(self):
        self.assert_clean({
            "src/base/a.h": '// #include "store/b.h"\n/*\n#include "store/b.h"\n*/\n',
            "src/store/b.h": "",
        })

    def test_description_names_floor_and_edges(self):
        with tempfile.TemporaryDirectory() as root:
            script.write_tree(root, {"src/base/a.h": "", "src/store/b.h": include("base/a.h")})
            lines = [line.split() for line in include_graph.describe(include_graph.Tree(root))]
        self.assertEqual(lines, [["3", "store", "->", "base", "(1)"], ["0", "base"]])


if __name__ == "__main__":
    unittest.main()
